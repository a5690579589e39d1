"""Every order, in batches of rows, tokens and packs, in every adapter of this environment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from every_order import IDS, batchings, is_refused, numbers, orders, planned
from mixed_files import write_sets

tf = pytest.importorskip("tensorflow")

ROADS: dict[str, Callable[[tfr.Loader], list[list[int]]]] = {
    "Loader": lambda loader: [batch["id"].tolist() for batch in loader],
    "tf.data": lambda loader: [batch["id"].numpy().tolist() for batch in loader.to_tf_dataset()],
    "keras": lambda loader: [
        np.asarray(batch[0]).ravel().tolist() for batch in passes(loader.to_keras(features="id"))
    ],
}


def passes(epochs: Any) -> list[Any]:
    return [epochs[step] for step in range(len(epochs))]


@batchings
@orders
def test_batches_are_the_plans_and_resume(tmp_path: Path, name: str, batching: str) -> None:
    call, plan = planned(tmp_path, name, batching)
    if is_refused(call, plan, tfr.Loader):
        return

    def loader() -> tfr.Loader:
        return call(tfr.Loader)  # type: ignore[no-any-return]

    expected = [IDS[each].tolist() for each in numbers(plan)]
    assert len(expected) > (name != "in order, of some")
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
        # An iterator at the end of its epoch continues with the next epoch.
        assert rest == expected[2:] or len(expected) <= 2, road


def test_a_table_has_rows_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"number of rows here\. A Loader takes a ByTokens"):
        tfr.scan(write_sets(tmp_path)["web"], batch_size=tfr.ByTokens(9))  # type: ignore[arg-type]
