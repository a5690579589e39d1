"""A process continues from another process's checkpoint. Several processes read each record once.

Importing TensorFlow takes seconds, so all processes start together, and one of them runs all tasks
that need a fresh process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tfrfast as tfr
from example_files import plain, write_examples

tf = pytest.importorskip("tensorflow")

from map_functions import is_lifted  # noqa: E402
from range_server import range_server  # noqa: E402
from tensorflow_child import (  # noqa: E402
    FEATURES,
    flat,
    lifted,
    loaded,
    loaded_again,
    row_of,
    shuffled,
)

CHILD = str(Path(__file__).parents[2] / "support" / "tensorflow_child.py")
COUNTS = [30, 0, 21, 9]
COUNT = sum(COUNTS)


class Module(tf.Module):  # type: ignore[misc]
    """Graphs that read files: names as an argument, and names in the graph."""

    def __init__(self, files: list[str]) -> None:
        super().__init__()
        self._files = files
        self.rows = tfr.TFRecordDataset(files).map(row_of).batch(4)  # lifted: not made in a graph

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])  # type: ignore[untyped-decorator]
    def stream(self, names: Any) -> Any:
        return tfr.TFRecordDataset(names).batch(10 * COUNT).get_single_element()

    @tf.function(input_signature=[])  # type: ignore[untyped-decorator]
    def shuffle(self) -> Any:
        return shuffled(self._files).unbatch().batch(10 * COUNT).get_single_element()

    @tf.function(input_signature=[])  # type: ignore[untyped-decorator]
    def load(self) -> Any:
        return loaded(self._files).unbatch().batch(10 * COUNT).get_single_element()

    @tf.function(input_signature=[])  # type: ignore[untyped-decorator]
    def lift(self) -> Any:
        return self.rows.unbatch().batch(10 * COUNT).get_single_element()


class Saved(NamedTuple):
    """The saved iterators and graphs, and the answers of a fresh process."""

    rest_of_shuffle: list[int]
    rest_of_lifted: list[int]
    rest_of_loader: list[int]
    rest_of_second_iteration: list[int]
    whole_shuffle: list[int]
    whole_loader: list[int]
    child: dict[str, Any]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_examples(tmp_path_factory.mktemp("examples"), COUNTS)


def save_in_the_middle(dataset: Any, path: Path, batches: int) -> list[int]:
    iterator = iter(dataset)
    for _ in range(batches):
        next(iterator)
    tf.train.Checkpoint(iterator=iterator).write(str(path))
    return flat(iterator)


@pytest.fixture(scope="module")
def saved(files: list[str], service: Any, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    folder = tmp_path_factory.mktemp("saved")
    rest_of_shuffle = save_in_the_middle(shuffled(files), folder / "shuffled", 19)
    rest_of_lifted = save_in_the_middle(lifted(files), folder / "lifted", 19)
    rest_of_loader = save_in_the_middle(loaded(files), folder / "loaded", 19)
    twice = loaded_again(files)
    flat(twice)
    rest_of_second_iteration = save_in_the_middle(twice, folder / "again", 5)
    tf.saved_model.save(Module(files), str(folder / "model"))
    run = subprocess.run([sys.executable, CHILD, str(folder), *files], capture_output=True)
    assert run.returncode == 0, run.stderr.decode(errors="replace")[-3000:]
    return Saved(
        rest_of_shuffle,
        rest_of_lifted,
        rest_of_loader,
        rest_of_second_iteration,
        flat(shuffled(files)),
        flat(loaded(files)),
        json.loads(run.stdout),
    )


def test_the_middle_of_a_shuffle_is_restored(saved: Saved) -> None:
    assert len(saved.rest_of_shuffle) == 3 * COUNT - 19 * 4
    assert saved.child["restored shuffle"] == saved.rest_of_shuffle


def test_the_middle_of_lifted_batches_is_restored(saved: Saved) -> None:
    assert len(saved.rest_of_lifted) == 3 * COUNT - 19 * 4
    assert saved.child["restored lifted"] == saved.rest_of_lifted


def test_the_middle_of_a_loaders_epoch_is_restored(saved: Saved) -> None:
    assert len(saved.rest_of_loader) == 2 * COUNT - 19 * 4
    assert saved.child["restored loader"] == saved.rest_of_loader


def test_the_middle_of_a_loaders_second_iteration_is_restored(
    saved: Saved, files: list[str]
) -> None:
    assert len(saved.rest_of_second_iteration) == COUNT - 5 * 4
    assert saved.rest_of_second_iteration != flat(loaded_again(files))[5 * 4 :]
    assert saved.child["restored second iteration"] == saved.rest_of_second_iteration


def test_a_saved_graph_reads_what_it_read(saved: Saved) -> None:
    expected = [list(range(COUNT)), saved.whole_shuffle, saved.whole_loader]
    assert saved.child["saved graph"][:3] == expected


def test_a_saved_graph_has_what_tensorflow_maps(saved: Saved, files: list[str]) -> None:
    assert is_lifted(Module(files).rows)
    (rows,) = tf.data.TFRecordDataset(files).map(row_of).batch(COUNT)
    assert saved.child["saved graph"][3:] == [column.numpy().tolist() for column in rows]


@pytest.mark.parametrize("source", ["dataset", "lifted", "loader", "function"])
def test_replicas_share_the_records(saved: Saved, source: str) -> None:
    mirrored = saved.child["mirrored"]
    assert "error" not in mirrored, mirrored["error"]
    assert sorted(mirrored[source]) == list(range(COUNT))
    if source == "lifted":  # the order of the files
        assert mirrored[source] == list(range(COUNT))


def test_an_estimator_trains_and_predicts(saved: Saved) -> None:
    estimated = saved.child["estimator"]
    if estimated is None:
        pytest.skip("this TensorFlow has no tf.estimator")
    assert "error" not in estimated, estimated["error"]
    assert estimated["steps"] == 2 * COUNT // 8
    assert sorted(estimated["ids"]) == list(range(COUNT))


def datasets(files: list[str]) -> dict[str, Any]:
    batches = tfr.TFRecordDataset(files).shuffle(1).batch(4)
    return {
        "shuffled": batches.parse_example(FEATURES).map(lambda batch: batch["id"]),
        "epochs": shuffled(files),
        "loader": loaded(files),
        "lifted": lifted(files),
        "file order": tfr.TFRecordDataset(files)
        .batch(4)
        .parse_example(FEATURES)
        .map(lambda batch: batch["id"]),
    }


# test_a_service_gives_the_rows_that_tensorflow_maps holds OFF.
@pytest.mark.parametrize(
    ("which", "policy"),
    [
        *((which, "DYNAMIC") for which in ("shuffled", "epochs", "lifted", "loader", "file order")),
        ("file order", "FILE"),
        ("shuffled", "FILE_OR_DATA"),
        ("lifted", "DATA"),
    ],
)
def test_service_workers_give_each_record_once(
    files: list[str], service: Any, which: str, policy: str
) -> None:
    tfr.Reader(files).close()
    distributed = datasets(files)[which].apply(
        tf.data.experimental.service.distribute(
            processing_mode=getattr(tf.data.experimental.service.ShardingPolicy, policy),
            service=service.target(),
        )
    )
    epochs = {"epochs": 3, "lifted": 3, "loader": 2}.get(which, 1)
    assert sorted(flat(distributed)) == sorted(list(range(COUNT)) * epochs)


def test_service_workers_read_urls(files: list[str], service: Any) -> None:
    pytest.importorskip("obstore", reason="needs obstore")
    with range_server() as server:
        for path in files:
            server.put(f"set/{Path(path).name}", Path(path).read_bytes())
        urls = [f"{server.url}/set/{Path(path).name}" for path in files]
        tfr.Reader(urls).close()
        for which in ("shuffled", "file order"):
            before = len(server.seen)
            distributed = datasets(urls)[which].apply(
                tf.data.experimental.service.distribute(
                    processing_mode=tf.data.experimental.service.ShardingPolicy.DYNAMIC,
                    service=service.target(),
                )
            )
            assert sorted(flat(distributed)) == list(range(COUNT))
            assert len(server.seen) > before


def test_a_service_gives_the_rows_that_tensorflow_maps(
    files: list[str], service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers, each with everything, in order."""
    tfr.Reader(files).close()

    def rows(library: Any) -> list[Any]:
        batches = library.TFRecordDataset(files).map(row_of).batch(4)
        off = tf.data.experimental.service.ShardingPolicy.OFF
        distributed = batches.apply(
            tf.data.experimental.service.distribute(processing_mode=off, service=service.target())
        )
        return sorted(plain(batch) for batch in distributed)

    expected = rows(tf.data)
    assert rows(tfr) == expected
    monkeypatch.setenv("TFRFAST_LIFT_PARSING", "0")
    assert rows(tfr) == expected
