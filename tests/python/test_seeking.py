"""An exact shuffle of storage with slow random reads."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

import tfrfast as tfr
from tfrfast import _native
from tfrfast.loading import shuffle_costs

Costs = tuple[float, float]  # the seconds of a read at random, and of a MiB in order
NETWORK_DISK = (330e-6, 8e-3)


@pytest.fixture
def shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(shuffle_costs, "_said", set())
    monkeypatch.setattr(shuffle_costs, "_measured", set())
    monkeypatch.setattr(shuffle_costs, "_MUCH_S", 0.1)
    with tfr.Writer(tmp_path / "shard") as writer:
        for _ in range(10_000):
            writer.write(bytes(240))
    return tmp_path / "shard"


def test_the_cost_is_said_once_and_the_remedy_can_be_pasted(
    shard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native, "read_costs", lambda path: NETWORK_DISK)
    with pytest.warns(tfr.SlowPathWarning, match=r"each read at random takes 0\.33 ms") as said:
        loader = tfr.Loader(shard, 10, seed=1)
    assert said[0].filename == __file__
    # The measurement changes no order.
    assert list(loader.plan.indices(0, 0)) == list(
        tfr.Plan(tfr.Shuffle(seed=1), 10, num_records=10_000).indices(0, 0)
    )
    monkeypatch.setattr(shuffle_costs, "_said", set())
    remedy = re.search(r"tfr\.BlockShuffle\([^)]*\)", str(said[0].message))
    assert remedy is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.Loader(shard, 10, order=eval(remedy[0]))


@pytest.mark.parametrize(
    "costs",
    [None, (20e-6, 0.0), (330e-6, 10.0)],
    ids=["in memory", "a fast disk", "as slow in order"],
)
def test_nothing_is_said_where_the_order_does_not_matter(
    shard: Path, monkeypatch: pytest.MonkeyPatch, costs: Costs | None
) -> None:
    monkeypatch.setattr(_native, "read_costs", lambda path: costs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.Loader(shard, 10, seed=1)


def test_shards_in_memory_are_not_measured(tmp_path: Path) -> None:
    path = tmp_path / "written"
    path.write_bytes(bytes(33 << 20))
    assert _native.read_costs(str(path)) is None
    assert _native.read_costs(str(tmp_path / "none")) is None
