"""This process's share of the data and of the processors."""

from __future__ import annotations

import os
from typing import Any

import torch.distributed

from tfrfast import _native
from tfrfast.base.arguments import Remainder
from tfrfast.order import Plan

__all__ = ["Share", "share_of_processors"]


class Share:
    """This process's rank and the number of ranks: given, or torch.distributed's. And what becomes
    of an epoch's last positions: by default "keep" on one rank, and "pad" on several, because
    collectives need equally many steps on each rank, and no record should be lost.

    A process group may be made later than a loader, so each epoch asks again. Worker processes have
    no group, and use the last answer of the process that started them.
    """

    def __init__(
        self, rank: int | None, world: int | None, remainder: Remainder | None = None
    ) -> None:
        if (rank is None) != (world is None):
            raise ValueError(
                "Give rank and world together, or neither: then torch.distributed says both."
            )
        self.given = rank is not None
        self._remainder = remainder
        self._seen: tuple[int, int] | None = None
        if rank is not None and world is not None:
            self._seen = rank, world

    def so_far(self) -> dict[str, Any]:
        """Returns arguments of a Plan. Without a process group, the rank is 0 and the world 1."""
        distributed = torch.distributed
        if not self.given and distributed.is_available() and distributed.is_initialized():
            self._seen = distributed.get_rank(), distributed.get_world_size()
        rank, world = self._seen or (0, 1)
        remainder = self._remainder or ("keep" if world == 1 else "pad")
        return {"rank": rank, "world": world, "remainder": remainder}

    def of(self, plan: Plan) -> Plan:
        """Returns this process's part of a plan: the same plan unless the ranks have changed.
        Raises RuntimeError if other ranks exist but are unknown.
        """
        share = self.so_far()
        others = os.environ.get("WORLD_SIZE", "1")
        if self._seen is None and others not in ("", "1"):
            raise RuntimeError(
                f"WORLD_SIZE is {others}, but torch.distributed is not initialized, so each of "
                "these processes would read all records. Call "
                "torch.distributed.init_process_group() first, or give rank and world. For all "
                "records in this process, give rank=0 and world=1."
            )
        is_same = (plan.rank, plan.world) == (share["rank"], share["world"])
        return plan if is_same else plan._with_share(**share)

    def __getstate__(self) -> dict[str, Any]:
        self.so_far()
        return self.__dict__


def share_of_processors() -> int:
    """Returns this rank's number of processors, if ranks share the machine's processors."""
    ranks_here = os.environ.get("LOCAL_WORLD_SIZE", "")
    ranks = int(ranks_here) if ranks_here.isdecimal() else 1
    return max(1, _native.usable_processors() // max(1, ranks))
