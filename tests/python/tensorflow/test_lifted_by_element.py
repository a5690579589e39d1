"""Functions whose ops partly run row by row, on decoded columns: the results of tf.data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import outcomes, plain, write_examples
from explained import is_planned

tf = pytest.importorskip("tensorflow")

from map_functions import BY_ELEMENT, Function, is_lifted, parse, with_lifting  # noqa: E402

COUNTS = [20, 0, 11]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_examples(tmp_path_factory.mktemp("examples"), COUNTS)


@pytest.fixture(autouse=True)
def planned(files: list[str]) -> None:
    tfr.Reader(files).close()


def both(files: Any, f: Function, rows: int = 4, drop: bool = False) -> tuple[Any, Any]:
    """Returns lifted batches of our dataset, and TensorFlow's batches."""
    ours, theirs = (
        reader(files).map(f, tf.data.AUTOTUNE).batch(rows, drop_remainder=drop)
        for reader in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
    )
    assert is_lifted(ours)
    assert ours.element_spec == theirs.element_spec
    return ours, theirs


@pytest.mark.parametrize("function", BY_ELEMENT)
def test_rows_are_what_tensorflow_makes(files: list[str], function: str) -> None:
    f, op = BY_ELEMENT[function]
    ours, theirs = both(files, f)
    expected = outcomes(theirs)
    assert outcomes(ours) == expected
    assert f"row by row from {op}" in str(tfr.explain(ours))
    batches = with_lifting(tfr.TFRecordDataset(files).map(f).batch(4), False)
    assert outcomes(batches) == expected


@pytest.mark.parametrize("drop", [False, True])
def test_pure_ops_run_on_whole_batches_beside_them(files: list[str], drop: bool) -> None:
    def f(record: Any) -> Any:
        parsed = parse(record)
        flipped = tf.image.random_flip_left_right(tf.reshape(parsed["dense"], [1, 3, 1]))
        return tf.one_hot(parsed["label"], 2), tf.reduce_sum(flipped), parsed["id"] + 1

    ours, theirs = both(files, f, 8, drop)
    for (labels, sums, ids), expected in zip(ours, theirs, strict=True):
        assert plain((labels, ids)) == plain((expected[0], expected[2]))
        tf.debugging.assert_near(sums, expected[1])


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
    def f(record: Any) -> Any:
        return parse(record)["id"], draw()

    ours, _ = both(files, f)
    numbers = [number for _ in range(2) for _, batch in ours for number in batch.numpy().tolist()]
    assert len(set(numbers)) > 50


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
    ours = ours.with_options(options)
    iterator = iter(ours)
    seen = [next(iterator)[0].numpy().tolist() for _ in range(2)]
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "saved"))
    expected = [ids.numpy().tolist() for ids, _ in iterator]
    again = iter(ours)
    tf.train.Checkpoint(iterator=again).restore(saved)
    assert [ids.numpy().tolist() for ids, _ in again] == expected
    assert len({*sum(seen + expected, [])}) == 31


def png_or_not(record: Any) -> Any:
    """Fails for record 9."""
    parsed = parse(record)
    pixels = tf.zeros([1, 1, 1], tf.uint8)
    png = tf.where(parsed["id"] == 9, b"no image", tf.io.encode_png(pixels))
    return tf.io.decode_png(png, channels=1), parsed["id"]


@pytest.mark.parametrize("drop", [False, True])
def test_a_row_that_fails_is_an_error_at_its_batch(files: list[str], drop: bool) -> None:
    ours, theirs = both(files, png_or_not, 4, drop)
    found, expected = outcomes(ours), outcomes(theirs)
    assert found[:3] == expected[:3]
    assert found[2] is tf.errors.InvalidArgumentError
    ids = [number for each in found if isinstance(each, tuple) for number in each[1]]
    rest = list(range(12, 28 if drop else 31))
    assert ids[-len(rest) :] == rest
    left = [outcomes(batches.ignore_errors()) for batches in (ours, theirs)]
    assert left[0] == left[1]


def test_an_assert_that_fails_is_an_error_though_nobody_needs_it(files: list[str]) -> None:
    def f(record: Any) -> Any:
        parsed = parse(record)
        tf.debugging.assert_less(parsed["id"], tf.constant(9, tf.int64), "an id is too large")
        return parsed["name"], parsed["dense"]

    for second in (lambda name, dense: name, lambda name, dense: (name, dense)):
        ours, theirs = (
            reader(files).map(f).map(second).batch(4)
            for reader in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
        )
        assert is_lifted(ours)
        assert outcomes(ours)[:3] == outcomes(theirs)[:3]
        assert outcomes(ours)[2] is tf.errors.InvalidArgumentError
        with pytest.raises(tf.errors.InvalidArgumentError, match="an id is too large"):
            list(ours)


def test_rows_of_different_shapes_fail_as_in_batch(files: list[str]) -> None:
    def f(record: Any) -> Any:
        parsed = parse(record)
        return tf.range(parsed["id"] // 8)

    ours, theirs = both(files, f, 5)
    assert outcomes(ours)[:2] == outcomes(theirs)[:2]
    assert outcomes(ours)[1] is tf.errors.InvalidArgumentError
    ours, theirs = both(files, f, 8)
    assert outcomes(ours) == outcomes(theirs)


def test_two_maps_each_have_such_ops(files: list[str]) -> None:
    def first(record: Any) -> Any:
        parsed = parse(record)
        return tf.cond(parsed["id"] > 4, lambda: parsed["id"], lambda: -parsed["id"]), parsed[
            "name"
        ]

    def second(number: Any, name: Any) -> Any:
        return tf.size(tf.strings.split(name, "-")), number * 2, tf.cast(number, tf.float32)

    ours, theirs = (
        reader(files).map(first).map(second).batch(4)
        for reader in (tfr.TFRecordDataset, tf.data.TFRecordDataset)
    )
    assert is_lifted(ours)
    assert ours.element_spec == theirs.element_spec
    assert outcomes(ours) == outcomes(theirs)


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_checkpoint_goes_on(files: list[str], tmp_path: Path, shuffled: bool) -> None:
    def f(record: Any) -> Any:
        parsed = parse(record)
        return parsed["id"], tf.random.stateless_uniform([], [1, parsed["id"]])

    def iterator() -> Any:
        source = tfr.TFRecordDataset(files)
        source = source.shuffle(31, seed=3) if shuffled else source
        return iter(source.map(f).batch(4).map(lambda number, _: number).prefetch(1))

    first = iterator()
    next(first), next(first)
    saved = tf.train.Checkpoint(iterator=first).save(str(tmp_path / "saved"))
    expected = [plain(batch) for batch in first]
    second = iterator()
    tf.train.Checkpoint(iterator=second).restore(saved)
    assert [plain(batch) for batch in second] == expected


@pytest.mark.parametrize("reads", [None, 2])
def test_a_saved_model_holds_such_batches(
    files: list[str], tmp_path: Path, reads: int | None
) -> None:
    f, _ = next(iter(BY_ELEMENT.values()))
    source = tfr.TFRecordDataset(files, num_parallel_reads=reads)
    if reads is None:
        source = source.shuffle(9, seed=1)
    dataset = source.map(f).batch(4).prefetch(1)
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
