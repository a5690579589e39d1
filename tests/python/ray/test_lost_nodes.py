"""A node dies in the middle of reading and writing, and every record is written once."""

from __future__ import annotations

import functools
import os
import signal
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from orders import shuffled

tray = pytest.importorskip("tfrfast.ray", exc_type=ModuleNotFoundError)

ID = {"id": tfr.FixedLen((), "int64")}


def _die_once(batch: dict[str, Any], *, mark: str) -> dict[str, Any]:
    """Kills the node that works on record 700, unless one was killed before."""
    if 700 in batch["id"]:
        try:
            Path(mark).touch(exist_ok=False)
        except FileExistsError:
            return batch
        os.kill(os.getppid(), signal.SIGKILL)  # its raylet
        os.kill(os.getpid(), signal.SIGKILL)
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
    some = dataset.map_batches(functools.partial(_die_once, mark=str(mark)), batch_size=None)
    done = tray.write(some, tmp_path / "out/train", num_shards=4, sync=False)
    assert mark.exists()
    records = list(tfr.Reader(done.paths))
    assert tfr.parse_example(records, ID)["id"].tolist() == shuffled(1500, 3).tolist()
    assert sorted(os.listdir(tmp_path / "out")) == [f"train-{i:05}-of-00004" for i in range(4)]
