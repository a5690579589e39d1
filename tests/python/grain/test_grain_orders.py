"""Every order, in batches of rows, tokens and packs, for Grain and JAX."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from every_order import (
    ID,
    IDS,
    batchings,
    is_refused,
    numbers,
    orders,
    planned,
    source_in_order,
)

pytest.importorskip("grain", reason="needs grain")

import tfrfast.grain as tg
import tfrfast.jax as tj


def on_devices(source: Any, batching: Any, **options: Any) -> Any:
    return tj.Loader(tfr.Loader(source, batching, **options))


def in_grain(source: Any, batching: Any, **options: Any) -> Any:
    return tg.IterDataset(tfr.Loader(source, batching, **options))


def in_a_worker(source: Any, batching: Any, **options: Any) -> Any:
    """The only worker's part of the batches, in turn with another worker's."""
    dataset = in_grain(source, batching, **options)
    dataset.set_slice(slice(1, None, 2))
    return dataset


@pytest.mark.parametrize("road", [in_grain, in_a_worker, on_devices])
@batchings
@orders
def test_batches_are_the_plans_and_resume(
    tmp_path: Path, name: str, batching: str, road: Any
) -> None:
    call, plan = planned(tmp_path, name, batching)
    if is_refused(call, plan, road):
        return
    expected = [IDS[each].tolist() for each in numbers(plan)]
    expected = expected[1::2] if road is in_a_worker else expected
    begun, resumed = call(road), call(road)
    if road is on_devices:
        first = list(islice(begun, 1))
        resumed.load_state_dict(begun.state_dict())
    else:
        batches = iter(begun)
        first = list(islice(batches, 1))
        resumed = iter(resumed)
        resumed.set_state(batches.get_state())
    rest = [batch["id"].tolist() for batch in resumed]
    assert [batch["id"].tolist() for batch in first] == expected[:1]
    # An iterator at the end of its epoch continues with the next epoch.
    assert rest == expected[1:] or plan.steps == 1


@orders
def test_items_of_a_source_are_in_the_order(tmp_path: Path, name: str) -> None:
    source, order = source_in_order(tmp_path, name)
    items = tg.Source(source, features=ID, **order)
    plan = tfr.Loader(source, 1, features=ID, **order).plan
    records = tg.Source(getattr(source, "reader", source), features=ID)
    expected = [records[number]["id"] for (number,) in numbers(plan)]
    assert [items[i]["id"] for i in range(len(items))] == expected
