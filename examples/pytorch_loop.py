"""PyTorch on any number of ranks, stopped and resumed on more. Tensors share the columns' memory.

python examples/pytorch_loop.py
torchrun --nproc-per-node 2 examples/pytorch_loop.py
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from mnist_data import PIXELS, features, write_digits
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

import tfrfast.torch

GLOBAL_BATCH = 64
FEATURES = features("floats")


def make_loader(shards: list[str], **options: Any) -> tfrfast.torch.Loader:
    """A loader for this rank. The records of a step do not depend on the number of ranks."""
    world = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
    options = {"features": FEATURES, "seed": 7, "remainder": "drop", **options}
    return tfrfast.torch.Loader(shards, GLOBAL_BATCH // world, **options)


def make_model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(PIXELS, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
    )


def train(
    loader: tfrfast.torch.Loader, model: torch.nn.Module, steps: int | None = None
) -> dict[str, Any]:
    """Trains to the end of the epoch, or for `steps`. Returns a checkpoint."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, batch in enumerate(loader, start=1):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(batch["image"] / 255), batch["label"]).backward()
        optimizer.step()
        if step == steps:
            break
    plain = model.module if isinstance(model, DistributedDataParallel) else model
    return {"model": plain.state_dict(), "input": loader.state_dict()}


@torch.no_grad()
def accuracy(shards: list[str], model: torch.nn.Module) -> float:
    """The accuracy over the whole test, in which each example counts once."""
    right = total = 0
    for batch in tfrfast.torch.Loader(
        shards, 500, features=FEATURES, shuffle=False, rank=0, world=1
    ):
        right += int((model(batch["image"] / 255).argmax(1) == batch["label"]).sum())
        total += len(batch["label"])
    return right / total


def noisy(batch: tfrfast.torch.Batch) -> tfrfast.torch.Batch:
    """An augmentation that depends on the records alone, not on threads or workers."""
    noise = torch.Generator().manual_seed(int(batch.indices[0]))
    batch["image"] += torch.randn(batch["image"].shape, generator=noise)
    return batch


def in_processes(shards: list[str], workers: int) -> DataLoader[tfrfast.torch.Batch]:
    """Reads through a DataLoader, for transforms in Python that keep the GIL."""
    dataset = tfrfast.torch.IterableDataset(
        shards, GLOBAL_BATCH, features=FEATURES, seed=7, transform=noisy
    )
    return DataLoader(dataset, batch_size=None, num_workers=workers)


def train_on_this_rank(train_shards: list[str], test_shards: list[str]) -> None:
    """Runs under torchrun: DistributedDataParallel, with an input that needs no coordination."""
    torch.distributed.init_process_group("gloo")
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    model = DistributedDataParallel(make_model())
    train(make_loader(train_shards), model)
    print(f"rank {rank} of {world}: {accuracy(test_shards, model.module):.1%} of the test right")
    torch.distributed.destroy_process_group()


def train_here(train_shards: list[str], test_shards: list[str]) -> None:
    model = make_model()
    loader = make_loader(train_shards)
    checkpoint = train(loader, model, steps=len(loader) // 2)
    print(f"stopped after step {loader.step}: {checkpoint['input']}")
    resumed, rest = make_model(), make_loader(train_shards)
    resumed.load_state_dict(checkpoint["model"])
    rest.load_state_dict(checkpoint["input"])
    train(rest, resumed)
    train(loader, resumed)
    print(f"two epochs: {accuracy(test_shards, resumed):.1%} of the test right")
    images = sum(len(batch["label"]) for batch in in_processes(train_shards, workers=2))
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
