"""Every order, in batches of rows and of tokens, on every road that this environment has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from mixed_files import SIZES, mixture_of, write_sets

tf = pytest.importorskip("tensorflow")

ID = {"id": tfr.FixedLen((), "int64")}
COUNT = sum(SIZES.values())
ORDERS: dict[str, Any] = {
    "exact": tfr.Shuffle(3),
    "exact, of some": tfr.Shuffle(3, indices=range(0, COUNT, 2)),
    "as given": tfr.InOrder(),
    "some as given": tfr.InOrder(indices=[5, 80, 5, 33]),
    "by blocks": tfr.BlockShuffle(8, 2, seed=1),
    "weighted": tfr.Weighted(np.arange(COUNT) + 1.0, length=60, seed=2),
    "mixture": None,
}
#: What is not drawn equally often, or not anywhere in the order, cannot be put together by length.
BY_TOKENS = {"exact", "exact, of some", "mixture"}
ROADS: dict[str, Callable[[tfr.Loader], list[list[int]]]] = {
    "Loader": lambda loader: [batch["id"].tolist() for batch in loader],
    "tf.data": lambda loader: [batch["id"].numpy().tolist() for batch in loader.to_tf_dataset()],
    "keras": lambda loader: [
        np.asarray(batch[0]).ravel().tolist() for batch in passes(loader.to_keras(features="id"))
    ],
}


def passes(epochs: Any) -> list[Any]:
    return [epochs[step] for step in range(len(epochs))]


@pytest.mark.parametrize("tokens", [None, 300], ids=["rows", "tokens"])
@pytest.mark.parametrize("name", ORDERS)
def test_batches_are_the_plans_and_resume(tmp_path: Path, name: str, tokens: int | None) -> None:
    shards = write_sets(tmp_path)
    mixture, order = mixture_of(shards, length=60), ORDERS[name]
    source = mixture if order is None else tfr.Reader(sum(shards.values(), []))
    given = {} if order is None else {"order": order}
    batching: Any = 7 if tokens is None else tfr.ByTokens(tokens)

    def loader() -> tfr.Loader:
        return tfr.Loader(source, batching, features=ID, **given)  # type: ignore[arg-type]

    if tokens is not None and name not in BY_TOKENS:
        with pytest.raises((TypeError, ValueError), match="ByTokens"):
            loader()
        return
    ids = np.concatenate([np.arange(SIZES[each]) for each in shards])
    plan = loader().plan
    expected = [ids[plan.indices(0, step)].tolist() for step in range(plan.steps)]
    assert len(expected) > (name != "some as given")
    for road, batches in ROADS.items():
        assert batches(loader()) == expected, road
    begun = loader()
    iterator = iter(begun)
    for _ in expected[:2]:
        next(iterator)
    for road in ("Loader", "tf.data"):
        resumed = loader()
        resumed.load_state_dict(begun.state_dict())
        rest = ROADS[road](resumed)
        # What ends with its epoch begins the next one.
        assert rest == expected[2:] or len(expected) <= 2, road


def test_a_table_has_rows_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"number of rows here\. A Loader takes a ByTokens"):
        tfr.scan(write_sets(tmp_path)["web"], batch_size=tfr.ByTokens(9))  # type: ignore[arg-type]
