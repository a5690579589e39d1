"""Ray Train with PyTorch: each worker opens a Loader, and a run goes on with fewer workers.

python examples/ray_train.py --workers 2 --lose-one
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import ray
import ray.train
import torch
from mnist_data import PIXELS, features, write_digits
from ray.train.torch import TorchTrainer, prepare_model

import tfrfast.torch

GLOBAL_BATCH = 60
STEPS_BETWEEN_CHECKPOINTS = 50


def make_model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(PIXELS, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
    )


def train_on_this_worker(config: dict[str, Any]) -> None:
    """Runs on each worker. Batches never travel: a worker reads its own batches from the files."""
    context = ray.train.get_context()
    rank, world = context.get_world_rank(), context.get_world_size()
    model = prepare_model(make_model())
    plain = model.module if world > 1 else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    # If the number of workers divides the batch, the records of a step do not depend on it.
    loader = tfrfast.torch.Loader(
        config["shards"],
        GLOBAL_BATCH // world,
        features=features("floats"),
        seed=7,
        rank=rank,
        world=world,
        remainder="drop",
    )
    if found := ray.train.get_checkpoint():
        with found.as_directory() as folder:
            saved = torch.load(Path(folder, "run.pt"), weights_only=False)
        plain.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["input"])

    for epoch in range(loader.epoch, config["epochs"]):
        for batch in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(batch["image"] / 255), batch["label"])
            loss.backward()
            optimizer.step()
            if config["lose_one"] and rank == 1 and epoch == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            if loader.step % STEPS_BETWEEN_CHECKPOINTS == 0:
                save(plain, optimizer, loader, rank, world)
    save(plain, optimizer, loader, rank, world)


def save(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    loader: tfrfast.torch.Loader,
    rank: int,
    world: int,
) -> None:
    """All workers are at the same step, so the state of one worker is the state of all."""
    metrics = {"epoch": loader.epoch, "step": loader.step, "world": world}
    if rank != 0:
        ray.train.report(metrics)
        return
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "input": loader.state_dict(),
    }
    with tempfile.TemporaryDirectory() as folder:
        torch.save(state, Path(folder, "run.pt"))
        ray.train.report(metrics, checkpoint=ray.train.Checkpoint.from_directory(folder))


@torch.no_grad()
def accuracy(shards: list[str], model: torch.nn.Module) -> float:
    """Returns the accuracy over the whole test set. Each example counts once."""
    right = total = 0
    for batch in tfrfast.torch.Loader(
        shards, 500, features=features("floats"), shuffle=False, rank=0, world=1
    ):
        right += int((model(batch["image"] / 255).argmax(1) == batch["label"]).sum())
        total += len(batch["label"])
    return right / total


def run(shards: list[str], folder: Path, workers: int, epochs: int, lose_one: bool) -> Any:
    """Trains with up to `workers` workers. If some are lost, trains with fewer."""
    config = {"shards": shards, "epochs": epochs, "lose_one": lose_one}
    trainer = TorchTrainer(
        train_on_this_worker,
        train_loop_config=config,
        scaling_config=ray.train.ScalingConfig(num_workers=(1, workers)),
        run_config=ray.train.RunConfig(
            name="digits",
            storage_path=str(folder),  # on a cluster: a folder or bucket that all nodes see
            failure_config=ray.train.FailureConfig(max_failures=0 if lose_one else 3),
        ),
    )
    return trainer.fit()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--train", type=int, default=6_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lose-one", action="store_true", help="kill a worker, resume with one")
    options = parser.parse_args()
    ray.init(address="local", num_cpus=options.workers, include_dashboard=False)
    with tempfile.TemporaryDirectory() as temporary:
        digits = write_digits(Path(temporary, "data"), "floats", options.train)
        runs = Path(temporary, "runs")
        workers = options.workers
        if options.lose_one:
            try:
                run(digits.train, runs, workers, options.epochs, lose_one=True)
            except ray.train.TrainingFailedError:
                print("a worker was lost; going on with one")
            workers = 1
        # A run of the same name and folder begins at its last checkpoint.
        result = run(digits.train, runs, workers, options.epochs, lose_one=False)
        model = make_model()
        with result.checkpoint.as_directory() as folder:
            saved = torch.load(Path(folder, "run.pt"), weights_only=False)
        model.load_state_dict(saved["model"])
        print(f"{result.metrics}: {accuracy(digits.test, model):.1%} of the test right")


if __name__ == "__main__":
    main()
