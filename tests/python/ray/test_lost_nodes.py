"""A node dies in the middle of reading and writing, and every record is written once."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from orders import shuffled
from tfrfast.jobs.shuffling import spread_job
from tfrfast.jobs.shuffling.task_folder import TaskFolder

tray = pytest.importorskip("tfrfast.ray", exc_type=ModuleNotFoundError)

ID = {"id": tfr.FixedLen((), "int64")}


def _die_once(mark: str) -> None:
    """Kills the node of this task, unless one was killed for this mark before."""
    with contextlib.suppress(FileExistsError):
        Path(mark).touch(exist_ok=False)
        os.kill(os.getppid(), signal.SIGKILL)  # its raylet
        os.kill(os.getpid(), signal.SIGKILL)


def _die_at_record_700(batch: dict[str, Any], *, mark: str) -> dict[str, Any]:
    if 700 in batch["id"]:
        _die_once(mark)
    return batch


def test_a_dataset_is_written_whole_though_a_node_dies(
    cluster: Any, shards: list[str], tmp_path: Path
) -> None:
    import ray

    for _ in range(2):
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    mark = tmp_path / "one-died"
    dataset = tray.read(shards, features=ID, order=tfr.Shuffle(3), override_num_blocks=9)
    some = dataset.map_batches(
        functools.partial(_die_at_record_700, mark=str(mark)), batch_size=None
    )
    done = tray.write(some, tmp_path / "out/train", num_shards=4, sync=False)
    assert mark.exists()
    records = list(tfr.Reader(done.paths))
    assert tfr.parse_example(records, ID)["id"].tolist() == shuffled(1500, 3).tolist()
    assert sorted(os.listdir(tmp_path / "out")) == [f"train-{i:05}-of-00004" for i in range(4)]


class _Dying(tray.RayExecutor):  # type: ignore[misc, name-defined]
    """Kills the node of one task of each kind, after the task has written its file."""

    def __init__(self, marks: Path) -> None:
        super().__init__()
        self._marks = marks

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        (task,) = args
        return super().submit(_run_or_die, fn, task, str(self._marks / type(task).__name__))


def _run_or_die(fn: Any, task: Any, mark: str) -> Any:
    def keep(self: Any, *arguments: Any) -> None:
        _die_once(mark)
        original(self, *arguments)

    original = TaskFolder.keep
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TaskFolder, "keep", keep)
        return fn(task)


def test_a_set_is_shuffled_whole_though_nodes_die(
    cluster: Any, shards: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    for _ in range(3):
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    monkeypatch.setattr(spread_job, "_SMALL_TASK_BYTES", 20_000)
    monkeypatch.setattr(spread_job, "_TASKS", 8)
    one = tfr.shuffle(shards, tmp_path / "one" / "x", num_shards=8, seed=2)
    made = tfr.shuffle(
        shards, tmp_path / "out" / "x", num_shards=8, seed=2, executor=_Dying(tmp_path)
    )
    assert (tmp_path / "Divide").exists()
    assert (tmp_path / "Join").exists()
    assert [Path(p).read_bytes() for p in made.paths] == [Path(p).read_bytes() for p in one.paths]
    assert os.listdir(tmp_path / "out.tfrfast") == ["index"]
