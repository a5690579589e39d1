"""A Loader in the workers of PyTorch's DataLoader delivers each record once, or raises an error.

These tests imitate PyTorch. tests/python/torch/test_real_workers.py uses the real PyTorch.
"""

from __future__ import annotations

import multiprocessing
import pickle
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tfrfast as tfr
from patience import PATIENCE_S

RECORDS = [b"%d" % i for i in range(60)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    with tfr.Writer(tmp_path / "shard") as writer:
        writer.write_batch(RECORDS)
    return str(tmp_path / "shard")


@pytest.fixture
def be_worker(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Makes this process look like one of PyTorch's workers."""

    def be(number: int, count: int) -> None:
        worker = SimpleNamespace(id=number, num_workers=count)
        module = SimpleNamespace(get_worker_info=lambda: worker)
        monkeypatch.setitem(sys.modules, "torch.utils.data", module)

    return be


REFUSAL = r"worker 1 of the 4 workers .* was not told .* world=ranks \* 4 and rank=rank \* 4 \+ "


def test_a_loader_that_was_told_nothing_refuses_to_be_copied(path: str, be_worker: Any) -> None:
    be_worker(1, 4)
    loader = tfr.Loader(path, 10)
    for each in (loader, pickle.loads(pickle.dumps(loader))):
        for _ in range(2):
            with pytest.raises(RuntimeError, match=REFUSAL):
                iter(each)
        assert each.epoch == each.step == 0


def test_outside_of_workers_nothing_is_asked(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = tfr.Loader(path, 10)
    assert len(list(loader)) == 6
    for data in (None, SimpleNamespace(), SimpleNamespace(get_worker_info=lambda: None)):
        monkeypatch.setitem(sys.modules, "torch.utils.data", data)
        assert len(list(loader)) == 6


def test_a_single_worker_has_no_siblings(path: str, be_worker: Any) -> None:
    be_worker(0, 1)
    assert len(list(tfr.Loader(path, 10))) == 6


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("workers_first", [True, False])
def test_a_share_of_its_own_for_each_worker_of_each_rank(
    path: str, be_worker: Any, count: int, ranks: int, workers_first: bool
) -> None:
    delivered: Counter[bytes] = Counter()
    for rank in range(ranks):
        for number in range(count):
            be_worker(number, count)
            share = rank * count + number if workers_first else number * ranks + rank
            loader = tfr.Loader(path, 2, rank=share, world=ranks * count)
            for each in (loader, pickle.loads(pickle.dumps(loader))):
                iter(each)
            delivered.update(record for batch in loader for record in batch)
    assert delivered == Counter(RECORDS)


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
def test_ranks_alone_are_no_share(path: str, be_worker: Any, count: int, ranks: int) -> None:
    refused = set()
    for rank in range(ranks):
        loader = tfr.Loader(path, 2, rank=rank, world=ranks)
        copied = pickle.loads(pickle.dumps(loader))
        for number in range(count):
            be_worker(number, count)
            try:
                iter(copied)
            except RuntimeError:
                refused.add((rank, number))
    assert (0, 1) in refused


def test_files_of_its_own_are_a_share_if_it_says_so(path: str, be_worker: Any) -> None:
    be_worker(1, 4)
    mine = tfr.Loader(path, 10, world=1)
    assert len(list(mine)) == 6
    with pytest.raises(RuntimeError, match=REFUSAL):
        iter(tfr.Loader(path, 10, rank=0))
    with pytest.raises(RuntimeError, match=REFUSAL):
        iter(pickle.loads(pickle.dumps(mine)))  # as each worker gets the loader


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_what_was_said_in_the_parent_is_not_said_of_its_children(path: str, be_worker: Any) -> None:
    loader = tfr.Loader(path, 10, world=1)
    be_worker(1, 4)
    assert len(list(loader)) == 6
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def in_child() -> None:
        try:
            iter(loader)
        except RuntimeError as error:
            theirs.send(str(error))

    child = context.Process(target=in_child)
    child.start()
    child.join(PATIENCE_S)
    assert ours.poll()
    assert "was not told" in ours.recv()
