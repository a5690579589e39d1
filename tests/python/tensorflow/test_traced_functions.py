"""Our own functions: how often each is traced, and the functions that a call builds."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import write_examples

tf = pytest.importorskip("tensorflow")
functions = pytest.importorskip("tfrfast.tensorflow.build.functions")

SPECS = {"id": tf.io.FixedLenFeature([], tf.int64)}


def _parse(record: Any) -> Any:
    return tf.io.parse_single_example(record, SPECS)["id"]


def _pick(record: Any) -> Any:
    return tf.gather([7] * 9, tf.io.parse_single_example(record, SPECS)["id"])


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list that collects the names of traced functions and of their branches."""
    from tensorflow.python.framework import func_graph

    made: list[str] = []
    begin = func_graph.FuncGraph.__init__

    def noted(self: Any, name: str, *arguments: Any, **options: Any) -> None:
        made.append(name)
        begin(self, name, *arguments, **options)

    monkeypatch.setattr(func_graph.FuncGraph, "__init__", noted)
    return made


@pytest.mark.parametrize(
    ("call", "count"),
    [
        (lambda records: records.map(_parse).batch(4), 6),
        (lambda records: records.map(_pick).batch(4), 6),
        (lambda records: records.batch(4), 0),
        (lambda records: records.batch(4).parse_example(SPECS), 0),
        (lambda records: records.shuffle(9).batch(4), 0),
        (lambda records: records, 0),
    ],
)
def test_a_second_dataset_traces_only_what_is_its_own(
    tmp_path: Path, call: Any, count: int, traced: list[str]
) -> None:
    files = write_examples(tmp_path, [7])
    for _ in range(2):
        traced.clear()
        next(iter(call(tfr.TFRecordDataset(files).skip(1))))
    # The user's function, the same for columns, the decoding, and the function that passes batches
    # on or makes them again, with its two branches.
    assert len(traced) == count, traced


def test_tensorflow_rewrites_what_gains_by_it(tmp_path: Path) -> None:
    asked = tf.data.Options()
    asked.experimental_optimization.noop_elimination = True

    def rewrites(dataset: Any) -> Any:
        options = dataset._apply_debug_options().options()
        return options.experimental_optimization.apply_default_optimizations is not False

    batches = tfr.TFRecordDataset(write_examples(tmp_path, [7])).shuffle(9).map(_parse).batch(4)
    assert not rewrites(batches.prefetch(1))
    assert rewrites(batches.map(lambda batch: batch + 1))
    assert rewrites(batches.with_options(asked))
    assert rewrites(batches.shuffle(2))


def test_what_is_traced_once_works_in_graphs_and_functions(tmp_path: Path) -> None:
    files = write_examples(tmp_path, [7, 0, 6])
    expected = list(range(13))

    def numbers() -> Any:
        return tfr.TFRecordDataset(files).batch(4).parse_example(SPECS)

    def sums() -> Any:
        return numbers().reduce(
            tf.constant(0, tf.int64), lambda sum, x: sum + tf.reduce_sum(x["id"])
        )

    for _ in range(2):
        assert [int(each) for batch in numbers() for each in batch["id"]] == expected
        assert int(tf.function(sums, autograph=False)()) == sum(expected)
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            assert int(session.run(sums())) == sum(expected)


@pytest.mark.parametrize("last", ["filter", "with_options"])
def test_calls_after_a_map_build_nothing(
    tmp_path: Path, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = importlib.import_module("tfrfast.tensorflow.compiling")
    files = write_examples(tmp_path, [7])
    pipelines: list[Any] = []
    build = planned.build

    def noted(pipeline: Any) -> Any:
        pipelines.append(pipeline)
        return build(pipeline)

    monkeypatch.setattr(planned, "build", noted)
    mapped = tfr.TFRecordDataset(files).map(_parse)
    if last == "filter":
        dataset = mapped.filter(lambda number: number > 2).prefetch(1)
    else:
        dataset = mapped.with_options(tf.data.Options()).batch(4)
    assert not pipelines
    assert list(dataset)
    assert len(pipelines) == 1


def test_options_are_those_of_the_call(tmp_path: Path) -> None:
    files = write_examples(tmp_path, [7])
    options = tf.data.Options()
    options.deterministic = False
    dataset = tfr.TFRecordDataset(files).with_options(options)
    options.deterministic = True
    assert dataset.options().deterministic is False
    list(dataset)
    assert dataset.options().deterministic is False
