"""Ray Train: each worker opens a Loader with its rank, and a run continues with fewer workers."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from record_files import write_shard

pytest.importorskip("tfrfast.ray", exc_type=ModuleNotFoundError)

COUNT = 480
GLOBAL_BATCH = 12
EPOCHS = 2
STEPS_BETWEEN_CHECKPOINTS = 17
LAST_STEP_OF_A_NODE = 24


def _train(config: dict[str, Any]) -> None:
    """A "model" that counts its training steps for each record. An unsaved model is lost."""
    import ray.train

    context = ray.train.get_context()
    rank, world = context.get_world_rank(), context.get_world_size()
    loader = tfr.Loader(
        config["shards"],
        GLOBAL_BATCH // world,
        features={"id": tfr.FixedLen((), "int64")},
        seed=7,
        rank=rank,
        world=world,
    )
    trained, steps = np.zeros(COUNT, np.int64), 0
    if checkpoint := ray.train.get_checkpoint():
        with checkpoint.as_directory() as folder:
            saved = json.loads(Path(folder, "input.json").read_text())
            parts = [np.load(path) for path in sorted(Path(folder).glob("trained-*.npy"))]
        loader.load_state_dict(saved["loader"])
        steps = saved["steps"]
        if rank == 0:
            trained = sum(parts, trained)
    for _ in range(loader.epoch, EPOCHS):
        for batch in loader:
            trained[batch["id"]] += 1
            steps += 1
            if world == 2 and rank == 1 and steps == LAST_STEP_OF_A_NODE:
                os.kill(os.getppid(), signal.SIGKILL)  # the node itself: its raylet
                os.kill(os.getpid(), signal.SIGKILL)
            if steps % STEPS_BETWEEN_CHECKPOINTS == 0:
                _save(trained, loader, steps, world, rank)
    _save(trained, loader, steps, world, rank)


def _save(trained: Any, loader: tfr.Loader[Any], steps: int, world: int, rank: int) -> None:
    import ray.train

    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, f"trained-{rank}.npy"), trained)
        if rank == 0:
            state = {"loader": loader.state_dict(), "steps": steps}
            Path(folder, "input.json").write_text(json.dumps(state))
        ray.train.report(
            {"steps": steps, "world": world},
            checkpoint=ray.train.Checkpoint.from_directory(folder),
        )


@pytest.mark.slow
def test_a_run_that_loses_a_node_trains_on_each_record_once_an_epoch(
    cluster: Any, tmp_path: Path
) -> None:
    import ray
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    records = [tfr.encode_example({"id": number}) for number in range(COUNT)]
    shards = [
        write_shard(tmp_path / f"data-{i}", records[first : first + 100])
        for i, first in enumerate(range(0, COUNT, 100))
    ]
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    trainer = DataParallelTrainer(
        _train,
        train_loop_config={"shards": shards},
        scaling_config=ScalingConfig(num_workers=(1, 2)),
        run_config=RunConfig(
            storage_path=str(tmp_path / "runs"),
            name="elastic",
            failure_config=FailureConfig(max_failures=3),
        ),
    )
    result = trainer.fit()
    assert result.metrics["steps"] == EPOCHS * COUNT // GLOBAL_BATCH
    assert result.metrics["world"] == 1
    with result.checkpoint.as_directory() as folder:
        parts = [np.load(path) for path in Path(folder).glob("trained-*.npy")]
    assert [part.tolist() for part in parts] == [[EPOCHS] * COUNT]
