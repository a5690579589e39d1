"""Every order, in batches of rows, tokens and packs, in each class for PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from every_order import batchings, is_refused, numbers, orders, planned

torch = pytest.importorskip("torch")

import tfrfast.torch as tt  # noqa: E402


def sampler(source: Any, batching: Any, **order: Any) -> tt.BatchSampler:
    """The sampler does not see the records, so it gets their number and lengths."""
    del order["features"]
    is_mixture = isinstance(source, tfr.Mixture)
    return tt.BatchSampler(source if is_mixture else len(source), batching, **order)


def indices(batch: Any) -> list[int]:
    return batch if isinstance(batch, list) else batch.indices.tolist()


@pytest.mark.parametrize("road", [tt.Loader, tt.IterableDataset, sampler])
@batchings
@orders
def test_batches_are_the_plans_and_resume(
    tmp_path: Path, name: str, batching: str, road: Any
) -> None:
    call, plan = planned(tmp_path, name, batching)
    if batching == "packs" and road is sampler:
        plan = None  # it gives record numbers, and has no place for segments
    if is_refused(call, plan, road):
        return
    # The states of an IterableDataset are those of its iterators, for a StatefulDataLoader.
    begun, resumed = (
        iter(call(road)) if road is tt.IterableDataset else call(road) for _ in range(2)
    )
    batches = iter(begun)
    assert [indices(next(batches))] == numbers(plan)[:1]
    resumed.load_state_dict(begun.state_dict())
    # An iterator at the end of its epoch continues with the next epoch.
    rest = [indices(batch) for batch in resumed]
    assert rest == numbers(plan)[1:] or plan.steps == 1
