"""Checks that a Loader in a worker of PyTorch's DataLoader knows its share of the records.

Each worker has a copy of the Loader. If all copies delivered the same records, each record would
silently come once from every worker.
"""

from __future__ import annotations

import sys
from typing import Any, SupportsIndex

from tfrfast import _native
from tfrfast.order import Plan

__all__ = ["WorkerShare"]


class WorkerShare:
    """A Loader's given share, and the process that gave the share."""

    def __init__(self, world: SupportsIndex | None) -> None:
        self._world_was_said = world is not None
        self._home = _native.HomeProcess()

    def check(self, plan: Plan) -> None:
        """Raises RuntimeError in a worker whose siblings would deliver the same records."""
        worker = _torch_worker()
        if worker is None or worker.num_workers == 1 or self._is_told(plan, worker):
            return
        number, count = worker.id, worker.num_workers
        raise RuntimeError(
            f"This Loader is iterated in worker {number} of the {count} workers of a PyTorch "
            f"DataLoader, and was not told which share of the records is that worker's: every "
            f"worker would deliver the same records. Leave num_workers at 0, since the Loader "
            f"reads and decodes in threads of its own. Or use tfrfast.torch.IterableDataset, which "
            f"shards itself. Or make the Loader in the worker, with world=ranks * "
            f"{count} and rank=rank * {count} + torch.utils.data.get_worker_info().id. If its "
            f"files or indices are this worker's only, make it there with world=1."
        )

    def _is_told(self, plan: Plan, worker: Any) -> bool:
        # Ranks and workers may be counted in either order. If only the ranks were given, worker 1
        # of rank 0 is always refused.
        count = worker.num_workers
        if plan.world % count == 0 and worker.id in (
            plan.rank % count,
            plan.rank // (plan.world // count),
        ):
            return True
        return plan.world == 1 and self._world_was_said and self._home.is_this_one()


def _torch_worker() -> Any:
    """PyTorch's facts about this worker process. None in other processes and without PyTorch."""
    data = sys.modules.get("torch.utils.data")
    get_worker_info = getattr(data, "get_worker_info", None)
    return None if get_worker_info is None else get_worker_info()
