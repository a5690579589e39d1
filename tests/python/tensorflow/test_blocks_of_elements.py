"""Single elements that are parsed in whole blocks, beside TensorFlow's own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import outcomes, plain, some_example, write_examples
from explained import is_planned
from record_files import flip_payload_byte, write_shard

tf = pytest.importorskip("tensorflow")

from tfrfast.tensorflow.plan import batching  # noqa: E402

SPECS: dict[str, Any] = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "dense": tf.io.FixedLenFeature([3], tf.float32),
    "numbers": tf.io.VarLenFeature(tf.int64),
    "weights": tf.io.FixedLenSequenceFeature([], tf.float32, True),
    "words": tf.io.RaggedFeature(tf.string),
    "raw": tf.io.FixedLenFeature([], tf.string),
}
AUTO = tf.data.AUTOTUNE


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_examples(tmp_path_factory.mktemp("examples"), [20, 0, 31])


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "_BLOCK_ROWS", 16)


def parsed(record: Any) -> Any:
    return tf.io.parse_single_example(record, SPECS)


def fixed(record: Any) -> Any:
    row = parsed(record)
    return {"id": row["id"], "dense": row["dense"] * 2.0}


def in_python(row: Any) -> Any:
    return tf.ensure_shape(tf.numpy_function(lambda number: number + 1, [row["id"]], tf.int64), [])


def drawn(row: Any) -> Any:
    numbers = [tf.random.uniform([], 0, 1 << 40, tf.int64, seed) for seed in (7, None)]
    return row["id"], *numbers


CHAINS: dict[str, Callable[[Any], Any]] = {
    "elements": lambda records: records.map(fixed),
    "of all kinds": lambda records: records.map(parsed, AUTO).map(lambda row: row).prefetch(2),
    "small batches": lambda records: records.map(fixed, AUTO).batch(3),
    "few lists": lambda records: records.map(listed).padded_batch(3),
    "few ragged": lambda records: records.map(parsed).ragged_batch(3),
    "few sparse": lambda records: records.map(sparse).batch(3),
    "filtered": lambda records: (
        records.map(parsed).filter(lambda row: tf.size(row["words"]) > 1).map(lambda row: row["id"])
    ),
    "selected": lambda records: (
        records.map(parsed)
        .filter(lambda row: row["id"] % 3 > 0)
        .filter(lambda row: tf.size(row["weights"]) < 3)
        .map(lambda row: {"id": row["id"], "dense": row["dense"] * 2.0})
        .batch(12)
    ),
    "selected, all full": lambda records: (
        records.map(fixed, AUTO).filter(lambda row: row["id"] > 7).batch(9, drop_remainder=True)
    ),
    "none is selected": lambda records: (
        records.map(fixed).filter(lambda row: row["id"] < 0).batch(8).prefetch(1)
    ),
    "divided": lambda records: (
        records.take(40)
        .map(fixed)
        .filter(lambda row: row["id"] != 20)
        .map(lambda row: 100 // (row["id"] - 20))
        .batch(16)
    ),
    "by sums": lambda records: (
        records.map(fixed).filter(lambda row: tf.reduce_sum(row["dense"]) > 3.0).batch(8)
    ),
    "selected, of lists": lambda records: (
        records.map(lambda record: parsed(record)["weights"])
        .filter(lambda weights: tf.size(weights) == 2)
        .batch(8)
    ),
    "selected, then padded lists": lambda records: (
        records.map(parsed)
        .map(lambda row: {key: row[key] for key in ("id", "weights")})
        .filter(lambda row: tf.size(row["weights"]) != 2)
        .padded_batch(8)
    ),
    "selected, of each kind of list": lambda records: (
        records.map(parsed)
        .map(lambda row: {key: row[key] for key in ("words", "weights")})
        .filter(lambda row: tf.size(row["weights"]) != 2)
        .filter(lambda row: tf.size(row["words"]) > 0)
    ),
    "selected, sparse": lambda records: records.map(
        lambda record: parsed(record)["numbers"]
    ).filter(lambda row: row.shape[0] != 2),
    "selected and padded": lambda records: (
        records.map(fixed).filter(lambda row: row["id"] > 7).padded_batch(8)
    ),
    "repeated": lambda records: (
        records.map(fixed).filter(lambda row: row["id"] % 3 > 0).repeat(2).batch(16)
    ),
    "in buckets": lambda records: records.map(
        lambda record: tf.cast(parsed(record)["weights"] * 9.0, tf.int32)
    ).bucket_by_sequence_length(tf.size, [2, 3], [8, 8, 8]),
    "in groups": lambda records: records.map(fixed).group_by_window(
        lambda row: row["id"] % 3, lambda key, rows: rows.batch(8).map(lambda row: (key, row)), 8
    ),
    "in windows": lambda records: (
        records.map(fixed).window(5, 3).flat_map(lambda rows: rows["dense"].batch(5))
    ),
    "for a while": lambda records: records.map(fixed).take_while(lambda row: row["id"] < 47),
    "slices": lambda records: (
        records.map(fixed)
        .flat_map(lambda row: tf.data.Dataset.from_tensor_slices(row["dense"]))
        .batch(8)
    ),
    "slices of all": lambda records: (
        records.map(parsed)
        .map(lambda row: (row["dense"][:, None] + [1.0, 2.0], {"of": [row["id"]] * 3}))
        .flat_map(lambda *rows: tf.data.Dataset.from_tensor_slices(rows))
        .batch(7)
    ),
    "slices of lists": lambda records: (
        records.map(lambda record: parsed(record)["weights"])
        .flat_map(tf.data.Dataset.from_tensor_slices)
        .batch(7, drop_remainder=True)
    ),
    "in Python": lambda records: records.map(fixed).map(in_python).batch(8),
    "seeded": lambda records: records.map(fixed).map(drawn).batch(8),
    "tensors": lambda records: records.map(lambda record: parsed(record)["raw"]).map(
        lambda raw: tf.io.decode_raw(raw, tf.int16)
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_elements_are_tensorflows(files: list[str], name: str) -> None:
    turns = 2 if list(CHAINS).index(name) % 2 else None
    records = tf.data.TFRecordDataset(files, num_parallel_reads=turns)
    tf.random.set_seed(3)
    theirs = CHAINS[name](records)
    tf.random.set_seed(None)
    ours = tfr.accelerate(theirs)
    assert ours.element_spec == theirs.element_spec
    assert outcomes(ours) == outcomes(theirs)
    assert is_planned(ours), tfr.explain(ours)
    assert "decoded where they are read" in str(tfr.explain(ours))


def test_slices_are_never_single_elements_before_a_batch(files: list[str]) -> None:
    steps = tfr.explain(tfr.accelerate(CHAINS["slices of all"](tf.data.TFRecordDataset(files))))
    calls = [step.call.partition("(")[0] for step in steps.steps]
    assert calls == ["map", "map", "rebatch"]


def test_shuffled_records_come_once(files: list[str]) -> None:
    """The elements that pass a filter are shuffled exactly, and each element stays whole."""
    rows = tf.data.TFRecordDataset(files).map(parsed)
    theirs = rows.shuffle(10, 5).filter(lambda row: row["id"] % 2 > 0).map(lambda row: row["words"])
    ours = tfr.accelerate(theirs)
    seen, own = outcomes(ours), outcomes(theirs)
    assert seen != own
    assert sorted(seen) == sorted(own)
    assert "whole blocks" in str(tfr.explain(ours))


def test_what_decides_on_sums_of_floats_is_tensorflows(files: list[str]) -> None:
    steps = tfr.explain(tfr.accelerate(CHAINS["by sums"](tf.data.TFRecordDataset(files)))).steps
    assert [step.fused for step in steps] == [True, False, False]
    steps = tfr.explain(tfr.accelerate(CHAINS["selected"](tf.data.TFRecordDataset(files)))).steps
    assert all(step.fused for step in steps)


@pytest.mark.parametrize("name", ["selected", "selected, all full", "divided", "by sums"])
def test_the_class_selects_rows_too(files: list[str], name: str) -> None:
    theirs, ours = (
        CHAINS[name](reader(files)) for reader in (tf.data.TFRecordDataset, tfr.TFRecordDataset)
    )
    assert ours.element_spec == theirs.element_spec
    assert outcomes(ours) == outcomes(theirs)
    assert outcomes(ours.ignore_errors()) == outcomes(theirs)
    assert outcomes(ours.unbatch().batch(5)) == outcomes(theirs.unbatch().batch(5))


@pytest.mark.parametrize("is_damaged", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        *("elements", "filtered", "in groups", "in Python", "selected"),
        *("of all kinds", "few lists", "few ragged", "few sparse"),
    ],
)
def test_errors_are_tensorflows(tmp_path: Path, name: str, is_damaged: bool) -> None:
    records = [some_example(number) for number in range(40)]
    if not is_damaged:
        records[21] = b"no example"
    bad = write_shard(tmp_path / "bad", records)
    if is_damaged:
        flip_payload_byte(bad, records, 21)
    theirs = CHAINS[name](tf.data.TFRecordDataset(bad))
    ours = tfr.accelerate(theirs)
    expected = outcomes(theirs)
    error = tf.errors.DataLossError if is_damaged else tf.errors.InvalidArgumentError
    assert error in expected
    # Our batches differ, because no row is lost after the filter, and no record after damage.
    if is_damaged or name == "selected":
        end = expected.index(error) + 1
        assert outcomes(ours)[:end] == expected[:end]
        return
    assert outcomes(ours) == expected
    assert outcomes(tfr.accelerate(theirs.ignore_errors())) == outcomes(theirs.ignore_errors())


@pytest.mark.parametrize("calls", [None, 2])
@pytest.mark.parametrize("drop", [False, True])
def test_ignored_errors_leave_tensorflows_batches(
    tmp_path: Path, drop: bool, calls: int | None
) -> None:
    records = [some_example(number) for number in range(40)]
    records[21] = b"no example"
    bad = write_shard(tmp_path / "bad", records)

    def batches(library: Any, selects: bool) -> Any:
        rows = library.TFRecordDataset(bad).map(parsed)
        if selects:
            rows = rows.filter(lambda row: row["id"] % 3 > 0)
        made = rows.map(lambda row: row["id"]).batch(8, drop, calls)
        return made.map(lambda numbers: numbers + 1).ignore_errors()

    for selects in (False, True):
        theirs = batches(tf.data, selects)
        for ours in (tfr.accelerate(theirs), batches(tfr, selects)):
            assert outcomes(ours) == outcomes(theirs)


def test_a_checkpoint_goes_on_with_the_next_element(files: list[str], tmp_path: Path) -> None:
    rows = tf.data.TFRecordDataset(files).map(parsed).filter(lambda row: row["id"] % 2 > 0)
    ours = tfr.accelerate(rows.map(lambda row: row["words"]))
    iterator = iter(ours)
    for _ in range(17):
        next(iterator)
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "checkpoint"))
    again = iter(ours)
    tf.train.Checkpoint(iterator=again).restore(saved)
    assert [plain(each) for each in again] == [plain(each) for each in iterator]


def test_what_is_large_or_decodes_images_stays_tensorflows(
    files: list[str], tmp_path: Path
) -> None:
    large = [tfr.encode_example({"id": number, "raw": bytes(600_000)}) for number in range(9)]
    specs = {name: SPECS[name] for name in ("id", "raw")}
    chains = (
        (write_shard(tmp_path / "large", large), lambda row: row["id"]),
        (files, lambda row: tf.io.decode_jpeg(row["raw"])),
    )
    for names, made in chains:
        rows = tf.data.TFRecordDataset(names).map(lambda r: tf.io.parse_single_example(r, specs))
        assert not is_planned(tfr.accelerate(rows.map(made)))


@pytest.mark.parametrize("rows", [1, 3, 16])
@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize(
    "build",
    [
        lambda records, batch: batch(records.map(fixed)),
        lambda records, batch: batch(records.map(fixed).repeat(2)),
        lambda records, batch: batch(records.map(fixed)).repeat(2).prefetch(2),
        lambda records, batch: batch(records.map(listed).map(lambda values: values[:2])),
    ],
    ids=["once", "epochs in batches", "batches in epochs", "padded"],
)
def test_batches_are_cut_from_blocks(
    files: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows: int,
    drop: bool,
    build: Callable[[Any, Any], Any],
) -> None:
    monkeypatch.setattr(batching, "_BLOCK_ROWS", 32)

    def batch(rows_of: Any) -> Any:
        if rows_of.element_spec == tf.TensorSpec([None], tf.float32):
            return rows_of.padded_batch(rows, [4], drop_remainder=drop)
        return rows_of.batch(rows, drop)

    theirs = build(tf.data.TFRecordDataset(files), batch)
    ours = tfr.accelerate(theirs)
    assert ours._work.plan.pipeline.batches_in_block == 32 // rows
    assert ours.element_spec == theirs.element_spec
    assert int(ours.cardinality()) == int(theirs.cardinality())
    expected = outcomes(theirs)
    assert outcomes(ours) == expected
    for place in (0, 2, len(expected) - 1):
        begun = iter(ours)
        for _ in range(place):
            next(begun)
        path = tf.train.Checkpoint(iterator=begun).write(str(tmp_path / f"at-{place}"))
        resumed = iter(ours)
        tf.train.Checkpoint(iterator=resumed).read(path)
        assert [plain(each) for each in resumed] == expected[place:]


@pytest.mark.parametrize("rows", [3, 8])
def test_shuffled_batches_of_blocks_save_positions_alone(
    files: list[str], tmp_path: Path, rows: int
) -> None:
    ours = tfr.accelerate(
        tf.data.TFRecordDataset(files).map(fixed).shuffle(99, seed=1).batch(rows).repeat(2)
    )
    assert ours._work.plan.pipeline.batches_in_block == 16 // rows
    assert "positions alone" in str(tfr.explain(ours))
    assert int(ours._built.cardinality()) == 2 * -(-51 // rows)
    begun = iter(ours)
    found = [plain(next(begun)) for _ in range(25 // rows)]
    path = tf.train.Checkpoint(iterator=begun).write(str(tmp_path / "state"))
    resumed = iter(ours)
    tf.train.Checkpoint(iterator=resumed).read(path)
    rest = [plain(each) for each in resumed]
    assert rest == [plain(each) for each in begun]
    sizes = 2 * [*[rows] * (51 // rows), 51 % rows]
    ids = [numbers_of(each) for each in (*found, *rest)]
    assert [len(each) for each in ids] == [size for size in sizes if size]
    flat = [number for each in ids for number in each]
    assert sorted(flat[:51]) == sorted(flat[51:]) == list(range(51))


def numbers_of(batch: Any) -> list[int]:
    return list(batch["id"])


def sparse(record: Any) -> Any:
    return parsed(record)["numbers"]


def listed(record: Any) -> Any:
    return parsed(record)["weights"]


@pytest.mark.parametrize(
    ("build", "kept"),
    [
        (lambda records: records.map(fixed).batch(1), 16),
        (lambda records: records.map(fixed).batch(12), 1),
        (lambda records: records.map(sparse).batch(4), 1),
        (lambda records: records.map(sparse).batch(3), None),
        (lambda records: records.map(listed).padded_batch(16), 1),
        (lambda records: records.map(listed).padded_batch(15), None),
        (lambda records: records.map(lambda record: tf.tile(listed(record)[:1], [2])).batch(7), 0),
    ],
    ids=["one shape", "a block", "sparse", "few sparse", "lists", "few lists", "by row"],
)
def test_what_is_made_whole_depends_on_the_rows(
    files: list[str], build: Callable[[Any], Any], kept: int | None
) -> None:
    """`kept` is the number of batches of a block; None: single elements, 0: TensorFlow's."""
    work = tfr.accelerate(build(tf.data.TFRecordDataset(files)))._work
    if kept == 0:
        assert work.plan is None or work.plan.pipeline.lifted is None
    elif kept is None:
        assert work.plan.pipeline.elements is not None
    else:
        assert (work.plan.pipeline.elements, work.plan.pipeline.batches_in_block) == (None, kept)


def test_batches_that_would_take_too_much_memory_are_not_made_whole(
    files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "_MAX_BYTES", 100_000)
    records = tf.data.TFRecordDataset(files).shuffle(99)
    for wide, fits in ((10, True), (1_000, False)):
        rows = records.map(lambda record, wide=wide: tf.one_hot(parsed(record)["id"], wide))
        step = tfr.explain(tfr.accelerate(rows.batch(16))).steps[-1]
        assert step.fused is fits
        assert fits or "too large" in step.why


@pytest.mark.parametrize("drop", [False, True])
def test_an_error_takes_the_rows_of_its_batch_from_a_block(tmp_path: Path, drop: bool) -> None:
    records = [some_example(number) for number in range(40)]
    torn = write_shard(tmp_path / "torn", records[:15])
    whole = write_shard(tmp_path / "whole", records[20:])
    os.truncate(torn, os.path.getsize(torn) - 3)
    for files in ([torn, whole], [torn, torn], [whole, torn, whole]):
        theirs = tf.data.TFRecordDataset(files).map(fixed).prefetch(1).batch(4, drop)
        ours = tfr.accelerate(theirs)
        assert ours._work.plan.pipeline.batches_in_block == 4
        assert outcomes(ours) == outcomes(theirs)


def test_an_iteration_that_was_left_changes_no_later_order(files: list[str]) -> None:
    def made() -> Any:
        shuffled = tfr.TFRecordDataset(files).shuffle(100, seed=1)
        return shuffled.map(fixed).filter(lambda row: row["id"] % 3 > 0).batch(8)

    def ids(dataset: Any) -> list[int]:
        return [int(number) for batch in dataset for number in batch["id"]]

    read, left = made(), made()
    assert is_planned(left)
    first = ids(read)
    next(iter(left))
    assert ids(read) == ids(left) != first
