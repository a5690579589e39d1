"""Fields of protobuf messages as tensors of PyTorch and arrays of JAX."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from event_files import PATHS, write_events

torch = pytest.importorskip("torch")


@pytest.fixture
def shard(tmp_path: Path) -> str:
    return write_events(tmp_path / "events", 10)


def expected(shard: str) -> dict[str, Any]:
    with tfr.Reader(shard) as reader:
        parsed = tfr.parse_example(reader[:], tfr.Message.event().features(PATHS))
    return {name: parsed[name].tolist() for name in PATHS}


def lists(column: Any) -> list[Any]:
    """The rows of a tensor, a list, or a Ragged of any levels, of PyTorch or of JAX."""
    if not isinstance(column, (tfr.Ragged, tfr.torch.Ragged)):
        return column.tolist() if hasattr(column, "tolist") else column
    values = lists(column.values)
    is_numpy = isinstance(column, tfr.Ragged)
    splits = (column.row_splits if is_numpy else column.offsets).tolist()
    return [values[begin:end] for begin, end in itertools.pairwise(splits)]


def test_a_torch_loader_has_ragged_of_ragged(shard: str) -> None:
    features = tfr.Message.event().features(PATHS)
    found: dict[str, list[Any]] = {name: [] for name in PATHS}
    for batch in tfr.torch.Loader(shard, 4, features=features, shuffle=False):
        assert batch["time"].dtype == torch.float64
        for name in PATHS:
            found[name] += lists(batch[name])
    assert found == expected(shard)


def test_an_iterable_dataset_reads_them_in_workers(shard: str) -> None:
    dataset = tfr.torch.IterableDataset(
        shard, 4, features=tfr.Message.event().features(PATHS), shuffle=False
    )
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=1)
    found = [row for batch in loader for row in lists(batch["values"])]
    assert found == expected(shard)["values"]


def test_jax_gets_the_same_rows(shard: str) -> None:
    pytest.importorskip("jax")
    features = tfr.Message.event().features(PATHS)
    found: dict[str, list[Any]] = {name: [] for name in PATHS}
    for batch in tfr.jax.Loader(tfr.Loader(shard, 4, features=features, shuffle=False)):
        for name in PATHS:
            found[name] += lists(batch[name])
    assert found == expected(shard)
