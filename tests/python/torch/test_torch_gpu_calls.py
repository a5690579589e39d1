"""A Loader's calls of CUDA, recorded by a stand-in. These tests need no GPU."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from record_files import write_rows
from torch_data import ID, ids

torch = pytest.importorskip("torch")
tt = pytest.importorskip("tfrfast.torch")

SECOND = torch.device("cuda", 1)


class Cuda:
    """A machine with two GPUs whose memory is the CPU's. This thread uses the second GPU."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.chosen = threading.local()
        self.used: list[Any] = []  # the GPUs of pinned memory and of copies
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "current_device", self.current)
        monkeypatch.setattr(torch.cuda, "device", self.choose)
        monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: self.pin(tensor))
        self.chosen.index = 1

    def current(self) -> int:
        return getattr(self.chosen, "index", 0)

    @contextlib.contextmanager
    def choose(self, device: torch.device) -> Iterator[None]:
        before = self.current()
        self.chosen.index = self.current() if device.index is None else device.index
        yield
        self.chosen.index = before

    def pin(self, tensor: torch.Tensor) -> torch.Tensor:
        assert tensor.device.type == "cpu"  # as PyTorch has it
        assert tensor.layout == torch.strided
        self.used.append(self.current())
        return tensor


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    return Cuda(monkeypatch)


def test_cuda_is_not_asked_where_it_is_not_needed(
    shards: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked() -> bool:
        raise AssertionError("Asking makes CUDA unusable in forks.")

    monkeypatch.setattr(torch.cuda, "is_available", asked)
    monkeypatch.setattr(torch.cuda, "current_device", asked)
    for options in ({}, {"device": "cpu"}, {"transform": lambda batch: batch}):
        assert ids(tt.Loader(shards, 10, features=ID, seed=3, **options))


def test_threads_pin_for_the_gpu_of_the_loop(shards: list[str], cuda: Cuda) -> None:
    assert ids(tt.Loader(shards, 10, features=ID, seed=3, pin_memory=True, threads=2))
    assert set(cuda.used) == {1}


def test_what_a_transform_put_elsewhere_is_not_pinned(shards: list[str], cuda: Cuda) -> None:
    def transform(batch: Any) -> Any:
        return batch["id"], batch["id"].to("meta"), batch["id"].to_sparse()

    for here, there, sparse in tt.Loader(
        shards, 10, features=ID, transform=transform, pin_memory=True
    ):
        assert there.device.type == "meta"
        assert torch.equal(sparse.to_dense(), here)
    assert cuda.used


@pytest.mark.parametrize("device", ["cuda", "cuda:1", 1])
def test_batches_go_to_the_gpu_of_the_loop(
    shards: list[str], cuda: Cuda, monkeypatch: pytest.MonkeyPatch, device: Any
) -> None:
    from tfrfast.torch import batch_work

    asked = set()

    def copied(batch: Any, gpu: torch.device) -> Any:
        asked.add(gpu)
        return batch, None

    monkeypatch.setattr(batch_work, "begin_copy", copied)
    monkeypatch.setattr(batch_work, "finish_copy", lambda batch, event, gpu: batch)
    assert ids(tt.Loader(shards, 10, features=ID, device=device, threads=2))
    assert asked == {SECOND}
    assert set(cuda.used) == {1}


class Stream:
    """A stream whose work is done."""

    def __init__(self, device: Any = None) -> None:
        self.awaited = 0

    def record_event(self) -> str:
        return "event"

    def wait_event(self, event: str) -> None:
        assert event == "event"
        self.awaited += 1


def test_sparse_columns_are_copied_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tfrfast.torch.copying import begin_copy, finish_copy

    path = tmp_path / "sparse"
    write_rows(path, ({"at": [row], "of": [1.0], "id": row} for row in range(8)))
    features = {"x": tfr.SparseIndexed("at", "of", "float32", 8), **ID}
    want = list(tt.Loader(path, 4, features=features, shuffle=False))

    users, kept = Stream(), []

    def record_stream(tensor: torch.Tensor, stream: Stream) -> None:
        if tensor.layout != torch.strided:
            raise NotImplementedError("aten::record_stream, as in PyTorch's SparseCUDA")
        assert stream is users
        kept.append(tensor.data_ptr())

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", contextlib.nullcontext)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: users)
    monkeypatch.setattr(torch.Tensor, "record_stream", record_stream)
    cpu = torch.device("cpu")
    got = [finish_copy(*begin_copy(batch, cpu), cpu) for batch in want]
    assert users.awaited == 2
    for copy, batch in zip(got, want, strict=True):
        assert torch.equal(copy["x"].to_dense(), batch["x"].to_dense())
        parts = copy["id"], copy.indices, copy.valid, copy["x"]._indices(), copy["x"]._values()
        assert {part.data_ptr() for part in parts} <= set(kept)
