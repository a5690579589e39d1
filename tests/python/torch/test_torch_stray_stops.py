"""A StopIteration that escapes from a transform is an error, never the end of an epoch."""

from __future__ import annotations

from typing import Any

import pytest

from torch_data import ID

torch = pytest.importorskip("torch")
tt = pytest.importorskip("tfrfast.torch")

from torch.utils.data import DataLoader  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def asks_for_too_much(_: Any) -> Any:
    return next(iter([]))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("workers", [0, 1])
def test_in_an_iterable_dataset(shards: list[str], workers: int, threads: int) -> None:
    options: dict[str, Any] = {"transform": asks_for_too_much, "threads": threads}
    dataset = tt.IterableDataset(shards, 10, features=ID, **options)
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(DataLoader(dataset, batch_size=None, num_workers=workers))


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("features", [ID, None])
def test_in_a_map_style_dataset(shards: list[str], workers: int, features: Any) -> None:
    dataset = tt.Dataset(shards, features=features, transform=asks_for_too_much)
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(DataLoader(dataset, batch_size=10, num_workers=workers))
