"""A loader of three small data sets in every order, in batches of rows, of tokens, or of packs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from mixed_files import SIZES, mixture_of, write_sets

ID = {"id": tfr.FixedLen((), "int64")}
WORDS = {"words": tfr.VarLen("int32")}
COUNT = sum(SIZES.values())
#: The `id` of each record.
IDS = np.concatenate([np.arange(size) for size in SIZES.values()])
ORDERS: dict[str, Any] = {
    "shuffled": tfr.Shuffle(3),
    "shuffled, of some": tfr.Shuffle(3, indices=range(0, COUNT, 2)),
    "in order": tfr.InOrder(),
    "in order, of some": tfr.InOrder(indices=[5, 80, 5, 33]),
    "by blocks": tfr.BlockShuffle(8, 2, seed=1),
    "weighted": tfr.Weighted(np.arange(COUNT) + 1.0, length=60, seed=2),
    "mixture": None,
}
#: The orders that go with lengths: they draw every record equally often, at any place.
BY_LENGTH = {"shuffled", "shuffled, of some", "mixture"}

orders = pytest.mark.parametrize("name", ORDERS)
batchings = pytest.mark.parametrize("batching", ["rows", "tokens", "packs"])


def source_in_order(folder: Path, name: str) -> tuple[Any, dict[str, Any]]:
    """Returns a source, and the arguments that choose its order."""
    shards = write_sets(folder)
    if ORDERS[name] is None:
        return mixture_of(shards, length=60), {}
    return tfr.Reader(sum(shards.values(), [])), {"order": ORDERS[name]}


def planned(
    folder: Path, name: str, batching: str
) -> tuple[Callable[[Callable[..., Any]], Any], tfr.Plan | None]:
    """Returns a function that calls an adapter with the source, the batching and the order; and the
    plan, or None if the order does not go with the batching.
    """
    source, order = source_in_order(folder, name)
    reader = getattr(source, "reader", source)
    given: Any = 7
    if batching == "tokens":
        given = tfr.ByTokens(300, reader.lengths)
    elif batching == "packs":
        given = tfr.Packed(8, rows=3, lengths="words")
    features = ID | WORDS if batching == "packs" else ID

    def call(adapter: Callable[..., Any]) -> Any:
        return adapter(source, given, features=features, **order)

    if batching != "rows" and name not in BY_LENGTH:
        return call, None
    return call, call(tfr.Loader).plan


def is_refused(
    call: Callable[[Callable[..., Any]], Any], plan: tfr.Plan | None, adapter: Callable[..., Any]
) -> bool:
    """Returns True if there is no plan. Then the adapter must refuse the order, too."""
    if plan is None:
        with pytest.raises((TypeError, ValueError), match="ByTokens|Packed"):
            call(adapter)
    return plan is None


def numbers(plan: tfr.Plan) -> list[list[int]]:
    """The record numbers of each batch of epoch 0."""
    return [plan.indices(0, step).tolist() for step in range(plan.steps)]
