"""PyTorch on any number of ranks, stopped and resumed on more. Tensors share the columns' memory.

python examples/pytorch_loop.py
torchrun --nproc-per-node 2 examples/pytorch_loop.py
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed
from mnist_data import PIXELS, features, write_digits
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

import tfrfast as tfr

GLOBAL_BATCH = 64
FEATURES = features("floats")


class Tensors(NamedTuple):
    image: torch.Tensor
    label: torch.Tensor


def as_tensors(batch: tfr.Batch) -> Tensors:
    """Tensors in the batch's own memory. It returns to the loader's pool after the last of them."""
    return Tensors(torch.from_dlpack(batch["image"]), torch.from_dlpack(batch["label"]))


def make_loader(shards: list[str], rank: int = 0, world: int = 1) -> tfr.Loader:
    """A loader for one rank. The records of a step do not depend on the number of ranks."""
    return tfr.Loader(
        shards,
        GLOBAL_BATCH // world,
        features=FEATURES,
        seed=7,
        rank=rank,
        world=world,
        remainder="drop",
    )


def make_model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(PIXELS, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
    )


def train(loader: tfr.Loader, model: torch.nn.Module, steps: int | None = None) -> dict[str, Any]:
    """Trains to the end of the epoch, or for `steps`. Returns a checkpoint."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, batch in enumerate(loader, start=1):
        image, label = as_tensors(batch)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(image / 255), label).backward()
        optimizer.step()
        if step == steps:
            break
    plain = model.module if isinstance(model, DistributedDataParallel) else model
    return {"model": plain.state_dict(), "input": loader.state_dict()}


@torch.no_grad()
def accuracy(shards: list[str], model: torch.nn.Module) -> float:
    """The accuracy, in which each test example counts once."""
    right = total = 0
    for batch in tfr.Loader(shards, 500, features=FEATURES, shuffle=False):
        image, label = as_tensors(batch)
        right += int((model(image / 255).argmax(1) == label).sum())
        total += len(label)
    return right / total


class Batches(Dataset[Tensors]):
    """For augmentation in Python, which needs DataLoader's processes. An item is a whole batch."""

    def __init__(self, reader: tfr.Reader) -> None:
        self.reader = reader  # pickles as its arguments: workers open the same files

    def __getitem__(self, records: np.ndarray) -> Tensors:
        image, label = as_tensors(tfr.parse_example(self.reader.read(records), FEATURES))
        noise = torch.Generator().manual_seed(int(records[0]))
        return Tensors(image + torch.randn(image.shape, generator=noise), label)


class EpochOfPlan:
    """A sampler for DataLoader: the record numbers of each step, in an exact global shuffle."""

    def __init__(self, plan: tfr.Plan, epoch: int) -> None:
        self.plan, self.epoch = plan, epoch

    def __len__(self) -> int:
        return self.plan.steps

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self.plan.indices(self.epoch, step) for step in range(self.plan.steps))


def augmented(shards: list[str], workers: int) -> DataLoader[Tensors]:
    reader = tfr.Reader(shards)
    epoch = EpochOfPlan(tfr.Plan(len(reader), GLOBAL_BATCH, seed=7), epoch=0)
    return DataLoader(Batches(reader), sampler=epoch, batch_size=None, num_workers=workers)


def train_on_this_rank(train_shards: list[str], test_shards: list[str]) -> None:
    """Runs under torchrun: DistributedDataParallel, with an input that needs no coordination."""
    torch.distributed.init_process_group("gloo")
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    model = DistributedDataParallel(make_model())
    train(make_loader(train_shards, rank, world), model)
    print(f"rank {rank} of {world}: {accuracy(test_shards, model.module):.1%} of the test right")
    torch.distributed.destroy_process_group()


def train_here(train_shards: list[str], test_shards: list[str]) -> None:
    model = make_model()
    loader = make_loader(train_shards)
    checkpoint = train(loader, model, steps=loader.plan.steps // 2)
    print(f"stopped after step {loader.step}: {checkpoint['input']}")
    resumed, rest = make_model(), make_loader(train_shards)
    resumed.load_state_dict(checkpoint["model"])
    rest.load_state_dict(checkpoint["input"])
    train(rest, resumed)
    train(loader, resumed)
    print(f"two epochs: {accuracy(test_shards, resumed):.1%} of the test right")
    images = sum(len(label) for _, label in augmented(train_shards, workers=2))
    print(f"{images} images through two processes of a DataLoader")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--train", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        digits = write_digits(Path(temporary), "floats", options.train)
        run = train_on_this_rank if "WORLD_SIZE" in os.environ else train_here
        run(digits.train, digits.test)


if __name__ == "__main__":
    main()
