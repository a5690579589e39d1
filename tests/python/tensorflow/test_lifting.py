"""map(f) before batch(), where f parses records: the parse is lifted out, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import tfrfast as tfr
from example_files import elements, outcomes, plain, some_example, until_error, write_examples
from explained import is_planned
from graph_digests import graph_digest
from record_files import flip_payload_byte, write_shard

tf = pytest.importorskip("tensorflow")
nodes = pytest.importorskip("tfrfast.tensorflow.read.nodes")
batches = pytest.importorskip("tfrfast.tensorflow.build.lifted_batches")
batching = pytest.importorskip("tfrfast.tensorflow.plan.batching")

from against_tensorflow import both, gathered, resumed  # noqa: E402
from map_functions import (  # noqa: E402
    FAILING,
    FEATURES,
    LIFTED,
    NOT_LIFTED,
    Function,
    is_lifted,
    mapped,
    parse,
    popped,
    with_lifting,
)
from random_functions import Steps, done, random_steps  # noqa: E402
from row_by_row import as_written  # noqa: E402

COUNTS = [20, 0, 11]
CHAINS: dict[str, Callable[[Any, Function], Any]] = {
    "batch": lambda source, f: source.map(f).batch(4),
    "in parallel": lambda source, f: source.map(f, tf.data.AUTOTUNE).batch(4).prefetch(1),
    "full batches": lambda source, f: source.map(f).batch(4, drop_remainder=True),
    "part of it": lambda source, f: source.skip(1).map(f).take(9).shard(2, 1).batch(2),
    "repeat, batch": lambda source, f: source.map(f).repeat(2).batch(4),
    "batch, repeat": lambda source, f: source.map(f).batch(4).repeat(2),
    "full, repeat": lambda source, f: source.map(f).batch(4, drop_remainder=True).repeat(2),
    "twice": lambda source, f: source.map(f).batch(4, drop_remainder=True).batch(3).take(2),
    "prefetch": lambda source, f: source.prefetch(9).map(f).prefetch(4).batch(4).prefetch(2),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_examples(tmp_path_factory.mktemp("examples"), COUNTS)


@pytest.fixture(autouse=True)
def planned(files: list[str]) -> None:
    tfr.Reader(files).close()


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("name", LIFTED)
def test_batches_are_tensorflows(files: list[str], name: str, drop: bool) -> None:
    functions, op = LIFTED[name]
    ours, theirs = both(
        files, lambda source: mapped(source, functions).batch(4, drop_remainder=drop)
    )
    assert outcomes(ours) == outcomes(theirs)
    assert is_lifted(ours)
    text = str(tfr.explain(ours))
    if op is not None:
        assert f"row by row from {op}" in text if op else "row by row" not in text


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("name", FAILING)
def test_a_row_that_fails_is_an_error_at_its_batch(files: list[str], name: str, rows: int) -> None:
    ours, theirs = both(files, lambda source: mapped(source, FAILING[name]).batch(rows))
    assert is_lifted(ours)
    good, error = until_error(theirs)
    assert error is not None or rows == 1
    assert until_error(ours) == (good, error)
    if name != "another shape":  # which TensorFlow's rewriting of a reshape() lets through
        assert elements(ours.ignore_errors()) == elements(theirs.ignore_errors())


def test_rows_of_different_shapes_fail_as_in_batch(files: list[str]) -> None:
    def ranges(rows: int) -> tuple[list[Any], list[Any]]:
        datasets = both(
            files, lambda source: source.map(lambda r: tf.range(parse(r)["id"] // 8)).batch(rows)
        )
        assert is_lifted(datasets[0])
        found, expected = map(outcomes, datasets)
        return found, expected

    found, expected = ranges(5)
    assert found[:2] == expected[:2]
    assert found[1] is tf.errors.InvalidArgumentError
    found, expected = ranges(8)
    assert found == expected


@pytest.mark.parametrize("name", NOT_LIFTED)
def test_what_is_not_lifted_is_the_same(files: list[str], name: str) -> None:
    ours, theirs = both(files, lambda source: source.map(NOT_LIFTED[name]).batch(4))
    assert elements(ours) == elements(theirs)
    assert not is_lifted(ours)


@pytest.mark.parametrize("lifts", [True, False])
@pytest.mark.parametrize("chain", CHAINS)
def test_chains_give_what_tensorflow_gives(files: list[str], chain: str, lifts: bool) -> None:
    ours, theirs = both(files, lambda source: CHAINS[chain](source, popped))
    expected = elements(theirs)
    assert elements(with_lifting(ours, lifts)) == expected
    assert ours.cardinality().numpy() == len(expected)
    assert is_lifted(ours) == lifts


@pytest.mark.filterwarnings("ignore::tfrfast.SlowPathWarning")
@settings(max_examples=8, deadline=None)
@given(random_steps())
def test_random_functions_give_what_they_give_row_by_row(files: list[str], steps: Steps) -> None:
    tfr.Reader(files).close()  # leaves indexes, so that the records can be planned
    names = ("id", "dense", "name", "missing")

    @tf.autograph.experimental.do_not_convert
    def function(record: Any) -> Any:
        row = tf.io.parse_single_example(record, {name: FEATURES[name] for name in names})
        return tuple(done(steps, [row[name] for name in names]))

    def until_failure(dataset: Any) -> tuple[list[str], Any]:
        found: list[str] = []
        try:
            for element in dataset:
                found.append(repr(plain(element)))
        except (tf.errors.OpError, UnicodeDecodeError) as error:  # the message may quote any bytes
            return found, type(error)
        return found, None

    theirs = as_written(tf.data.TFRecordDataset(files), function).batch(4)
    ours = tfr.TFRecordDataset(files).map(function).batch(4)
    assert ours.element_spec == theirs.element_spec
    assert until_failure(ours) == until_failure(theirs)


@pytest.mark.parametrize(
    "chain",
    [
        lambda mapped: mapped,
        lambda mapped: mapped.batch(4),
        lambda mapped: mapped.shuffle(31, seed=1).batch(4),
        lambda mapped: mapped.take(5).repeat(2),
        lambda mapped: mapped.batch(4).ignore_errors(),
        lambda mapped: mapped.filter(lambda *_: True).shuffle(31),
    ],
)
def test_a_function_is_called_once(files: list[str], chain: Callable[[Any], Any]) -> None:
    calls: list[Any] = []

    def f(record: Any) -> Any:
        calls.append(record)
        return parse(record)

    assert list(chain(tfr.TFRecordDataset(files).map(f)))
    assert len(calls) == 1


@pytest.mark.parametrize(
    "options",
    [{}, {"num_parallel_calls": 3, "deterministic": False}, {"num_parallel_calls": 2, "name": "m"}],
)
def test_a_map_keeps_its_options_after_a_later_shuffle(
    files: list[str], options: dict[str, Any]
) -> None:
    before = tfr.TFRecordDataset(files).map(tf.strings.length, **options).shuffle(31, seed=1)
    shuffled = tfr.TFRecordDataset(files).shuffle(31, seed=1)
    after = tf.data.Dataset.map(shuffled, tf.strings.length, **options)
    assert graph_digest(before) == graph_digest(after)


@pytest.mark.parametrize("is_made_inside", [True, False])
def test_a_traced_function_sees_the_same_batches(files: list[str], is_made_inside: bool) -> None:
    def changed(record: Any) -> Any:
        row = parse(record)
        return row["id"] * 2, row["dense"] + 1.0, tf.strings.upper(row["name"])

    ours, theirs = both(files, lambda source: source.map(changed).batch(4))
    assert is_lifted(ours)

    @tf.function(autograph=False)
    def inside() -> Any:
        made = tfr.TFRecordDataset(files).map(changed).batch(4)
        return gathered(made if is_made_inside else ours)

    assert plain(inside()) == plain(gathered(theirs))


def test_attrs_classes_are_kept(files: list[str]) -> None:
    attr = pytest.importorskip("attr")
    row_class = attr.make_class("Row", ["left", "right"])

    def f(record: Any) -> Any:
        parsed = parse(record)
        return row_class(parsed["name"], {"of": parsed["id"] * 2})

    ours, theirs = both(files, lambda source: source.map(f).batch(4))
    assert is_lifted(ours)
    for row, expected in zip(ours, theirs, strict=True):
        assert type(row) is row_class
        assert plain((row.left, row.right)) == plain((expected.left, expected.right))


@pytest.mark.parametrize("drop", [False, True])
def test_a_shuffle_before_or_after_gives_the_same_order(files: list[str], drop: bool) -> None:
    made = []
    source = tfr.TFRecordDataset(files)
    for lifts in (True, False):
        for shuffled in (
            source.shuffle(31, seed=5).map(parse),
            source.map(parse, tf.data.AUTOTUNE).shuffle(31, seed=5),
        ):
            batches = shuffled.take(30).repeat(2).batch(8, drop_remainder=drop)
            assert is_lifted(with_lifting(batches, lifts)) == lifts
            made.append(elements(batches))
    assert made == [made[0]] * 4
    ids = [number for batch in made[0] for number in batch["id"]]
    assert ids != sorted(ids)
    assert len(ids) == (56 if drop else 60)


def test_a_function_gives_what_it_gives_as_it_was_written(files: list[str]) -> None:
    def f(record: Any) -> Any:
        logarithms = tf.math.log(parse(record)["dense"] - 0.5)  # for some negative numbers
        return tf.where(tf.logical_not(logarithms > 0.0), 0.0, logarithms)

    ours, theirs = both(files, lambda source: source.map(f).batch(31))
    assert is_lifted(ours)
    assert "floats of Log, LogicalNot may differ" in str(tfr.explain(ours))
    ((made,), (their_own,)) = ours, theirs
    assert np.isfinite(made.numpy()).all()
    assert np.isnan(their_own.numpy()).any()  # tf.data tests whether the values are at most 0
    bits = with_lifting(tfr.TFRecordDataset(files).map(f).batch(31), False)
    assert repr(elements(bits)) == repr([their_own.numpy().tolist()])


def uniform() -> Any:
    return tf.random.uniform([])


def corner_of_a_box() -> Any:
    boxes = tf.zeros([1, 0, 4])
    drawn = tf.image.sample_distorted_bounding_box(
        [1 << 12, 1 << 12, 3], boxes, use_image_if_no_bounding_boxes=True
    )
    row, column, _ = tf.unstack(tf.cast(drawn[0], tf.int64))
    return row * (1 << 12) + column


@pytest.mark.parametrize("draw", [uniform, corner_of_a_box])
def test_random_numbers_differ_from_row_to_row_and_epoch_to_epoch(
    files: list[str], draw: Callable[[], Any]
) -> None:
    ours = tfr.TFRecordDataset(files).map(lambda record: (parse(record)["id"], draw())).batch(4)
    assert is_lifted(ours)
    drawn = [(ids, numbers.numpy()) for _ in range(2) for ids, numbers in ours]
    assert [number for ids, _ in drawn for number in ids.numpy()] == [*range(31)] * 2
    assert len({number for _, numbers in drawn for number in numbers.tolist()}) > 50


@pytest.mark.parametrize("before_batch", [True, False])
def test_random_numbers_after_a_shuffle_are_not_logged(
    files: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str], before_batch: bool
) -> None:
    """TensorFlow logs such a function at each symbolic position. Users who request symbolic
    checkpoints accept the log.
    """

    def f(record: Any) -> Any:
        return parse(record)["id"], uniform()

    shuffled = tfr.TFRecordDataset(files).shuffle(40, seed=3)
    if before_batch:
        ours = shuffled.map(f).batch(4)
    else:
        ours = shuffled.map(lambda record: parse(record)["id"]).batch(4)
        ours = ours.map(lambda ids: (ids, tf.random.uniform(tf.shape(ids))))
    assert is_planned(ours)
    assert sum(len(ids) for ids, _ in ours) == 31
    assert "stateful" not in capfd.readouterr().err
    options = tf.data.Options()
    options.experimental_symbolic_checkpoint = True
    left = resumed(lambda: ours.with_options(options), 2, tmp_path)
    expected, again = ([number for ids, _ in each for number in ids] for each in left)
    assert again == expected
    assert len({*expected}) == 31 - 2 * 4


@pytest.mark.parametrize("name", ["values of lists", "ragged, and changed"])
def test_records_without_values(tmp_path: Path, name: str) -> None:
    records = [tfr.encode_example({"id": number, "words": [], "name": b""}) for number in range(5)]
    records += [tfr.encode_example({"id": 5, "name": b""}), some_example(6)]
    path = write_shard(tmp_path / "empty", records)
    ours, theirs = both(path, lambda source: mapped(source, LIFTED[name][0]).batch(3))
    assert is_lifted(ours)
    assert outcomes(ours) == outcomes(theirs)


class TestErrors:
    @pytest.fixture(params=["no Example", "a missing feature", "another type", "damage"])
    def bad(self, request: pytest.FixtureRequest, tmp_path: Path) -> str:
        records = [some_example(number) for number in range(31)]
        if request.param == "no Example":
            records[10] = records[13] = b"no Example"
        elif request.param == "a missing feature":
            records[10] = tfr.encode_example({"label": 1})
        elif request.param == "another type":
            records[10] = tfr.encode_example({"id": [1.5]})
        path = write_shard(tmp_path / "bad", records)
        if request.param == "damage":
            flip_payload_byte(path, records, 10)
        tfr.Reader(path).close()
        return path

    @pytest.mark.parametrize("name", ["popped", "values of lists", "whole lists"])
    @pytest.mark.parametrize("drop", [False, True])
    def test_come_after_the_good_batches(self, bad: str, name: str, drop: bool) -> None:
        def chain(source: Any) -> Any:
            return mapped(source, LIFTED[name][0], tf.data.AUTOTUNE).batch(4, drop)

        ours, theirs = both(bad, chain)
        assert is_lifted(ours)
        good, error = until_error(ours)
        assert len(good) == 2
        assert error is not None
        assert (good, error) == until_error(theirs)
        left = [
            with_lifting(chain(tfr.TFRecordDataset(bad)).ignore_errors(), lift)
            for lift in (True, False)
        ]
        assert not is_lifted(left[0])
        assert elements(left[0]) == elements(left[1])
        assert len(elements(left[0])) >= len(elements(theirs.ignore_errors()))

    def test_ignored_before_batch(self, bad: str) -> None:
        ours, theirs = both(bad, lambda source: source.map(parse).ignore_errors().batch(1))
        found, expected = elements(ours), elements(theirs)
        assert len(found) >= len(expected)
        assert found[:10] == expected[:10]

    def test_do_not_end_the_iteration(self, tmp_path: Path) -> None:
        records = [some_example(number) for number in range(12)]
        records[5] = b"no Example"
        path = write_shard(tmp_path / "bad", records)
        tfr.Reader(path).close()
        made = tfr.TFRecordDataset(path).map(lambda record: parse(record)["id"]).batch(4)
        good = [[0, 1, 2, 3], tf.errors.InvalidArgumentError, [6, 7, 8, 9], [10, 11]]
        assert outcomes(made) == good


@pytest.mark.parametrize("place", ["lifted.vectorised", "lifted.imported"])
def test_a_fault_of_ours_is_why_nothing_is_lifted(
    files: list[str], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("Some shapes\ncontradict.")

    monkeypatch.setenv("TFRFAST_RAISE_FAULTS", "0")
    monkeypatch.setattr(f"tfrfast.tensorflow.lift.{place}", fail)
    ours, theirs = both(files, lambda source: source.map(popped).batch(8))
    assert "was not lifted by a fault of tfrfast (ValueError: Some shapes)" in str(
        tfr.explain(ours)
    )
    assert elements(ours) == elements(theirs)


class TestSwitch:
    def test_off_is_the_reason(self, files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TFRFAST_LIFT_PARSING", "0")
        off = tfr.TFRecordDataset(files).map(parse).batch(4)
        assert not is_lifted(off)
        assert "TFRFAST_LIFT_PARSING is 0" in str(tfr.explain(off))

    def test_nonsense_is_refused(self, files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TFRFAST_LIFT_PARSING", "exact")
        with pytest.raises(ValueError, match="TFRFAST_LIFT_PARSING is 'exact'"):
            iter(tfr.TFRecordDataset(files))

    def test_without_private_names_nothing_is_lifted(
        self, files: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(nodes, "function_of", lambda mapped: None)
        ours, theirs = both(files, lambda source: source.map(parse).batch(4))
        assert not any(step.fused for step in tfr.explain(ours).steps)
        assert elements(ours) == elements(theirs)


class TestCheckpoints:
    @pytest.mark.parametrize("name", ["popped", "random of the record"])
    @pytest.mark.parametrize("drop", [False, True])
    @pytest.mark.parametrize("shuffled", [False, True])
    def test_go_on_where_they_were_made(
        self, files: list[str], tmp_path: Path, drop: bool, shuffled: bool, name: str
    ) -> None:
        def dataset() -> Any:
            source = tfr.TFRecordDataset(files)
            source = source.shuffle(31, seed=3) if shuffled else source
            return mapped(source, LIFTED[name][0]).batch(4, drop_remainder=drop).prefetch(1)

        expected, found = resumed(dataset, 2, tmp_path)
        assert found == expected

    @pytest.mark.parametrize("shuffled", [False, True])
    @pytest.mark.parametrize("lifts", [False, True])
    def test_of_the_other_form_are_refused(
        self, files: list[str], tmp_path: Path, lifts: bool, shuffled: bool
    ) -> None:
        def iterator(lifts: bool) -> Any:
            source = tfr.TFRecordDataset(files)
            source = source.shuffle(31, seed=3) if shuffled else source
            return iter(with_lifting(source.map(parse).batch(4), lifts))

        first = iterator(lifts)
        next(first), next(first)
        saved = tf.train.Checkpoint(iterator=first).save(str(tmp_path / "saved"))
        second = iterator(not lifts)
        with pytest.raises(tf.errors.OpError):
            tf.train.Checkpoint(iterator=second).restore(saved)
            next(second)


@pytest.mark.parametrize("reads", [None, 2])
def test_a_saved_model_holds_such_batches(
    files: list[str], tmp_path: Path, reads: int | None
) -> None:
    source = tfr.TFRecordDataset(files, num_parallel_reads=reads)
    source = source if reads else source.shuffle(9, seed=1)
    dataset = mapped(source, LIFTED["asserting"][0]).batch(4).prefetch(1)
    assert is_lifted(dataset)

    class Module(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dataset = dataset

        @tf.function(input_signature=[])  # type: ignore[untyped-decorator]
        def count(self) -> Any:
            return self.dataset.reduce(tf.constant(0), lambda count, _: count + 1)

    tf.saved_model.save(Module(), str(tmp_path / "saved"))
    assert tf.saved_model.load(str(tmp_path / "saved")).count() == len(list(dataset))


def test_large_batches_are_not_all_made_at_once(
    files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfrfast.tensorflow.build.batches.parallel_reads", lambda: 8)
    assert [batches.batches_at_once(size << 20) for size in (0, 1, 32, 64, 128, 5000)] == [
        *(8, 8, 8, 4, 2, 2)
    ]
    asked: list[int] = []
    monkeypatch.setattr(batches, "batches_at_once", lambda size: asked.append(size) or 2)
    monkeypatch.setattr(batching, "_BLOCK_ROWS", 4)
    for depth in (10, 10_000):
        wide = tfr.TFRecordDataset(files).map(lambda r, n=depth: tf.one_hot(parse(r)["id"], n))
        assert next(iter(wide.batch(4))).shape == [4, depth]
    assert asked[1] >= 4 * 10_000 * 4 > 100 * asked[0]


def test_values_of_unknown_number_count_by_the_size_of_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(batches, "batches_at_once", lambda size: asked.append(size) or 2)
    specs = {"x": tf.io.RaggedFeature(tf.int64)}
    for count in (10, 10_000):
        path = write_shard(tmp_path / str(count), [tfr.encode_example({"x": range(count)})] * 4)
        for records in (tfr.TFRecordDataset(path), tfr.TFRecordDataset(path).shuffle(4)):
            made = records.map(lambda record: tf.io.parse_single_example(record, specs)["x"] + 1)
            assert next(iter(made.batch(4))).shape == [4, count]
    few, few_shuffled, many, many_shuffled = asked
    assert min(many, many_shuffled) >= 4 * 10_000 * 8 > 100 * max(few, few_shuffled)
