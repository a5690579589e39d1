"""map(f) before batch(), where f parses records: the parse is lifted out, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from example_files import elements, plain, some_example, until_error, write_examples
from graph_digests import graph_digest
from record_files import flip_payload_byte, write_shard

tf = pytest.importorskip("tensorflow")
nodes = pytest.importorskip("tfrfast.tensorflow.read.nodes")
batches = pytest.importorskip("tfrfast.tensorflow.build.lifted_batches")
batching = pytest.importorskip("tfrfast.tensorflow.plan.batching")

from map_functions import (  # noqa: E402
    LIFTED,
    NOT_LIFTED,
    Function,
    divided,
    is_lifted,
    looked_up,
    parse,
    popped,
    table,
    with_lifting,
)

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


@pytest.mark.parametrize(
    ("chain", "function"),
    [*((chain, "popped") for chain in CHAINS), *(("batch", function) for function in LIFTED)],
)
def test_gives_what_tensorflow_gives(files: list[str], chain: str, function: str) -> None:
    apply, f = CHAINS[chain], LIFTED[function]
    theirs = apply(tf.data.TFRecordDataset(files), f)
    expected = elements(theirs)
    for lifts in (True, False):
        ours = with_lifting(apply(tfr.TFRecordDataset(files), f), lifts)
        assert ours.element_spec == theirs.element_spec
        assert elements(ours) == expected
        assert ours.cardinality().numpy() == len(expected)
        assert is_lifted(ours) == lifts


@pytest.mark.parametrize("function", NOT_LIFTED)
def test_what_is_not_lifted_is_the_same(files: list[str], function: str) -> None:
    f, why = NOT_LIFTED[function]
    ours, theirs = (
        reader(files).map(f).batch(4) for reader in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
    )
    assert ours.element_spec == theirs.element_spec
    assert elements(ours) == elements(theirs)
    assert not is_lifted(ours)
    refused = next(step for step in tfr.explain(ours).steps if step.call.startswith("batch("))
    assert why in refused.why


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


def test_attrs_classes_are_kept(files: list[str]) -> None:
    attr = pytest.importorskip("attr")
    row_class = attr.make_class("Row", ["left", "right"])

    def f(record: Any) -> Any:
        parsed = parse(record)
        return row_class(parsed["name"], {"of": parsed["id"] * 2})

    ours, theirs = (
        reader(files).map(f).batch(4) for reader in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
    )
    assert ours.element_spec == theirs.element_spec
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


def test_a_static_table_is_captured(files: list[str]) -> None:
    look_up = looked_up(table())
    ours, theirs = (
        reader(files).map(look_up).batch(8)
        for reader in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
    )
    assert ours.element_spec == theirs.element_spec
    assert elements(ours) == elements(theirs)
    assert is_lifted(ours)


def test_a_variable_is_read_when_its_record_comes(files: list[str]) -> None:
    offset = tf.Variable(5, dtype=tf.int64)
    batches = tfr.TFRecordDataset(files).map(lambda record: parse(record)["id"] + offset).batch(31)
    assert elements(batches) == [list(range(5, 36))]
    offset.assign(7)
    assert elements(batches) == [list(range(7, 38))]
    assert not is_lifted(batches)


def test_a_function_gives_what_it_gives_as_it_was_written(files: list[str]) -> None:
    def f(record: Any) -> Any:
        logarithms = tf.math.log(parse(record)["dense"] - 0.5)  # for some negative numbers
        return tf.where(tf.logical_not(logarithms > 0.0), 0.0, logarithms)

    batches = tfr.TFRecordDataset(files).map(f).batch(31)
    assert is_lifted(batches)
    assert "floats of Log, LogicalNot may differ" in str(tfr.explain(batches))
    ((made,), (theirs,)) = batches, tf.data.TFRecordDataset(files).map(f).batch(31)
    assert np.isfinite(made.numpy()).all()
    assert np.isnan(theirs.numpy()).any()  # tf.data tests whether the values are at most 0
    bits = with_lifting(tfr.TFRecordDataset(files).map(f).batch(31), False)
    assert repr(elements(bits)) == repr([theirs.numpy().tolist()])


@pytest.mark.parametrize("drop", [False, True])
def test_a_row_that_fails_is_an_error_at_its_batch(files: list[str], drop: bool) -> None:
    ours, theirs = (
        reader(files).map(divided).batch(4, drop_remainder=drop)
        for reader in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
    )
    assert is_lifted(ours)
    good, error = until_error(ours)
    assert len(good) == 2
    assert error is tf.errors.InvalidArgumentError
    assert (good, error) == until_error(theirs)
    assert elements(ours.ignore_errors()) == elements(theirs.ignore_errors())


class TestErrors:
    @pytest.fixture(params=["no Example", "a missing feature", "damage"])
    def bad(self, request: pytest.FixtureRequest, tmp_path: Path) -> str:
        records = [some_example(number) for number in range(31)]
        if request.param == "no Example":
            records[10] = records[13] = b"no Example"
        elif request.param == "a missing feature":
            records[10] = tfr.encode_example({"id": 10})
        path = write_shard(tmp_path / "bad", records)
        tfr.Reader(path).close()
        if request.param == "damage":
            flip_payload_byte(path, records, 10)
        tfr.Reader(path).close()
        return path

    @pytest.mark.parametrize("chain", ["batch", "full batches", "in parallel"])
    def test_come_after_the_good_batches(self, bad: str, chain: str) -> None:
        apply = CHAINS[chain]
        ours, theirs = (
            apply(reader(bad), parse) for reader in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
        )
        assert is_lifted(ours)
        good, error = until_error(ours)
        assert len(good) == 2
        assert error is not None
        assert (good, error) == until_error(theirs)

    @pytest.mark.parametrize("chain", ["batch", "full batches", "in parallel"])
    def test_ignored_leave_what_an_unlifted_map_leaves(self, bad: str, chain: str) -> None:
        left = [
            with_lifting(CHAINS[chain](tfr.TFRecordDataset(bad), parse).ignore_errors(), lift)
            for lift in (True, False)
        ]
        assert not is_lifted(left[0])
        assert elements(left[0]) == elements(left[1])
        theirs = CHAINS[chain](tf.data.TFRecordDataset(bad), parse).ignore_errors()
        assert len(elements(left[0])) >= len(elements(theirs))

    def test_ignored_before_batch(self, bad: str) -> None:
        ours, theirs = (
            elements(reader(bad).map(parse).ignore_errors().batch(1))
            for reader in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
        )
        assert len(ours) >= len(theirs)
        assert ours[:10] == theirs[:10]

    def test_do_not_end_the_iteration(self, tmp_path: Path) -> None:
        records = [some_example(number) for number in range(12)]
        records[5] = b"no Example"
        path = write_shard(tmp_path / "bad", records)
        tfr.Reader(path).close()
        iterator = iter(tfr.TFRecordDataset(path).map(parse).batch(4))
        assert next(iterator)["id"].numpy().tolist() == [0, 1, 2, 3]
        with pytest.raises(tf.errors.InvalidArgumentError):
            next(iterator)
        assert next(iterator)["id"].numpy().tolist() == [6, 7, 8, 9]
        assert next(iterator)["id"].numpy().tolist() == [10, 11]


def test_a_part_that_is_cut_out_need_not_have_what_it_was_placed_beside(files: list[str]) -> None:
    def f(record: Any) -> Any:
        dense = parse(record)["dense"]
        beside = dense + 1.0
        with tf.compat.v1.colocate_with(beside):
            return tf.linalg.matmul(dense[:, tf.newaxis], dense[tf.newaxis])

    ours, theirs = (
        reader(files).map(f).batch(8) for reader in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
    )
    assert elements(ours) == elements(theirs)
    assert is_lifted(ours)


@pytest.mark.parametrize("place", ["lifted.vectorised", "lifted.imported"])
def test_a_fault_of_ours_is_why_nothing_is_lifted(
    files: list[str], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("Some shapes\ncontradict.")

    monkeypatch.setenv("TFRFAST_RAISE_FAULTS", "0")
    monkeypatch.setattr(f"tfrfast.tensorflow.lift.{place}", fail)
    ours = tfr.TFRecordDataset(files).map(popped).batch(8)
    assert "was not lifted by a fault of tfrfast (ValueError: Some shapes)" in str(
        tfr.explain(ours)
    )
    assert elements(ours) == elements(tf.data.TFRecordDataset(files).map(popped).batch(8))


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
        ours = tfr.TFRecordDataset(files).map(parse).batch(4)
        assert not any(step.fused for step in tfr.explain(ours).steps)
        assert elements(ours) == elements(tf.data.TFRecordDataset(files).map(parse).batch(4))


class TestCheckpoints:
    @pytest.mark.parametrize("drop", [False, True])
    @pytest.mark.parametrize("shuffled", [False, True])
    def test_go_on_where_they_were_made(
        self, files: list[str], tmp_path: Path, drop: bool, shuffled: bool
    ) -> None:
        def iterator() -> Any:
            source = tfr.TFRecordDataset(files)
            source = source.shuffle(31, seed=3) if shuffled else source
            return iter(source.map(parse).batch(4, drop_remainder=drop).prefetch(1))

        first = iterator()
        next(first), next(first)
        saved = tf.train.Checkpoint(iterator=first).save(str(tmp_path / "saved"))
        expected = [plain(batch) for batch in first]
        second = iterator()
        tf.train.Checkpoint(iterator=second).restore(saved)
        assert [plain(batch) for batch in second] == expected

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
    narrow, wide = (
        tfr.TFRecordDataset(files).map(lambda record, depth=depth: one_hot(record, depth)).batch(4)
        for depth in (10, 10_000)
    )
    assert next(iter(narrow)).shape == [4, 10]
    assert next(iter(wide)).shape == [4, 10_000]
    assert asked[1] >= 4 * 10_000 * 4 > 100 * asked[0]


def test_values_of_unknown_number_count_by_the_size_of_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(batches, "batches_at_once", lambda size: asked.append(size) or 2)
    specs = {"x": tf.io.RaggedFeature(tf.int64)}
    for count in (10, 10_000):
        feature = tf.train.Feature(int64_list=tf.train.Int64List(value=range(count)))
        example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
        path = write_shard(tmp_path / str(count), [example.SerializeToString()] * 4)
        for records in (tfr.TFRecordDataset(path), tfr.TFRecordDataset(path).shuffle(4)):
            made = records.map(lambda record: tf.io.parse_single_example(record, specs)["x"] + 1)
            assert next(iter(made.batch(4))).shape == [4, count]
    few, few_shuffled, many, many_shuffled = asked
    assert min(many, many_shuffled) >= 4 * 10_000 * 8 > 100 * max(few, few_shuffled)


def one_hot(record: Any, depth: int) -> Any:
    return tf.one_hot(parse(record)["id"], depth)


def test_in_a_graph_nothing_is_lifted(files: list[str]) -> None:
    @tf.function
    def total() -> Any:
        batches = tfr.TFRecordDataset(files).map(parse).batch(8)
        return batches.reduce(
            tf.constant(0, tf.int64), lambda so_far, batch: so_far + tf.reduce_sum(batch["id"])
        )

    assert total().numpy() == sum(range(31))
