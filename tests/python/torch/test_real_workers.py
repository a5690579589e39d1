"""tfrfast.Loader in real workers of PyTorch's DataLoader. test_torch_workers.py imitates
workers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from torch_data import until_an_error

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402


@pytest.fixture
def path(tmp_path: Path) -> str:
    with tfr.Writer(tmp_path / "shard") as writer:
        writer.write_batch([b"%d" % i for i in range(60)])
    return str(tmp_path / "shard")


def numbers_through(dataset: Any, **options: Any) -> list[int]:
    loader = DataLoader(dataset, batch_size=None, **options)
    return sorted(int(number) for batch in loader for number in batch)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_loader_without_a_share_is_refused_and_one_with_it_is_not(path: str, start: str) -> None:
    import torch_datasets  # which imports torch

    datasets = [torch_datasets.Wrapped(tfr.Loader(path, 10))]
    if start == "fork":
        datasets.append(torch_datasets.MadeInWorker(path))
    for dataset in datasets:
        assert numbers_through(dataset) == list(range(60))
        with pytest.raises(RuntimeError, match="worker 0 of the 2 workers"):
            options = {"num_workers": 2, "multiprocessing_context": start}
            next(until_an_error(DataLoader(dataset, batch_size=None, **options)))
    shared = torch_datasets.Shared(path)
    assert numbers_through(shared) == list(range(60))
    for workers in (1, 2) if start == "fork" else (1,):
        options = {"num_workers": workers, "multiprocessing_context": start}
        assert numbers_through(shared, **options) == list(range(60))
