"""A function run on several ranks of a process group, each in a process of its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

from patience import PATIENCE_S


def on_ranks(world: int, folder: Path, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """`function(*arguments)` on each rank of a gloo group; the results by rank."""
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe(duplex=False) for _ in range(world)]
    ranks = [
        context.Process(
            target=_on_rank, args=(rank, world, str(folder / "store"), pipe, function, arguments)
        )
        for rank, (_, pipe) in enumerate(pipes)
    ]
    for rank in ranks:
        rank.start()
    results = []
    for (ours, theirs), rank in zip(pipes, ranks, strict=True):
        theirs.close()  # the end of the child then ends our wait
        assert ours.poll(PATIENCE_S), "the rank hangs"
        results.append(ours.recv())
        rank.join(PATIENCE_S)
        assert rank.exitcode == 0
    return results


def _on_rank(
    rank: int,
    world: int,
    store: str,
    pipe: Any,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    import torch.distributed

    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=world
    )
    pipe.send(function(*arguments))
    torch.distributed.destroy_process_group()
