"""The Loader for PyTorch delivers a Loader's batches as tensors, with and without transforms."""

from __future__ import annotations

import contextlib
import pickle
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from record_files import write_rows
from torch_data import FEATURES, ID, NUM_RECORDS, example, flat, ids

torch = pytest.importorskip("torch")
tt = pytest.importorskip("tfrfast.torch")


def slowly(batch: Any) -> Any:
    time.sleep(random.Random(int(batch.indices[0])).random() * 0.01)
    return batch


def loader(shards: list[str], batch_size: int = 10, **options: Any) -> Any:
    return tt.Loader(shards, batch_size, **{"features": ID, "seed": 3, **options})


@pytest.fixture(params=["plain", "transformed", "moved"])
def output(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Transforms of batches: none, or a slow transform."""
    threads = {"transform": slowly, "threads": 3}
    return {"plain": {}, "transformed": threads, "moved": {**threads, "device": "cpu"}}[
        request.param
    ]


# ---- what batches hold


def test_tensors_have_the_values_of_the_records(shards: list[str]) -> None:
    seen = 0
    for batch in tt.Loader(shards, 10, features=FEATURES):
        for row, number in enumerate(batch.indices.tolist()):
            want = example(number)
            numbers, words = batch["numbers"], batch["words"]
            first, last = numbers.offsets[row : row + 2].tolist()
            assert numbers.values[first:last].tolist() == want["numbers"]
            first, last = words.offsets[row : row + 2].tolist()
            assert words.values[first:last] == want["words"]
            assert batch["name"][row] == want["name"]
            assert batch["dense"][row].tolist() == want["dense"]
            assert batch["id"][row] == number
            seen += 1
    assert seen == NUM_RECORDS


def test_tensors_lie_in_the_memory_of_the_columns(shards: list[str]) -> None:
    from tfrfast.torch.batch import as_tensors

    columns = next(iter(tfr.Loader(shards, 10, features=FEATURES)))
    batch = as_tensors(columns)
    assert batch["dense"].data_ptr() == columns["dense"].ctypes.data
    assert batch["numbers"].values.data_ptr() == columns["numbers"].values.ctypes.data
    assert batch["numbers"].offsets.data_ptr() == columns["numbers"].row_splits.ctypes.data
    assert batch.indices.data_ptr() == columns.indices.ctypes.data


def test_ragged_columns_are_what_torch_takes(shards: list[str]) -> None:
    batch = next(iter(tt.Loader(shards, 10, features=FEATURES, shuffle=False)))
    rows = torch.nested.nested_tensor_from_jagged(*batch["numbers"])
    assert [row.tolist() for row in rows.unbind()] == [list(range(i % 4)) for i in range(10)]
    weights = torch.arange(4.0)[:, None]
    sums = torch.nn.functional.embedding_bag(
        batch["numbers"].values,
        weights,
        batch["numbers"].offsets,
        mode="sum",
        include_last_offset=True,
    )
    assert sums[:, 0].tolist() == [sum(range(i % 4)) for i in range(10)]


def test_sparse_columns_are_sparse_tensors(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    write_rows(path, ({"at": [row, 5], "of": [1.0, row], "word": [b"a", b"b"]} for row in range(4)))
    sparse = {"x": tfr.SparseIndexed("at", "of", "float32", 6)}
    batch = next(iter(tt.Loader(path, 4, features=sparse, shuffle=False)))
    want = torch.zeros(4, 6)
    for row in range(4):
        want[row, row], want[row, 5] = 1, row
    assert torch.equal(batch["x"].to_dense(), want)
    words = {"x": tfr.SparseIndexed("at", "word", "bytes", 6)}
    with pytest.raises(TypeError, match=r"'x': PyTorch has no sparse .* tfr\.VarLen"):
        next(iter(tt.Loader(path, 4, features=words)))


def test_a_batch_moves_copies_and_pickles_as_one(shards: list[str]) -> None:
    batch = next(iter(tt.Loader(shards, 10, features=FEATURES)))
    moved = batch.to("meta")
    assert isinstance(moved, tt.Batch)
    tensors = [moved["id"], *moved["numbers"], moved["words"].offsets, moved.indices, moved.valid]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert moved["name"] == batch["name"]
    copy = pickle.loads(pickle.dumps(batch))
    assert torch.equal(copy["dense"], batch["dense"])
    assert torch.equal(copy.indices, batch.indices)
    assert copy["words"].values == batch["words"].values
    assert list(tt.Batch({"id": batch["id"]})) == ["id"]


def test_without_features_the_transform_gets_the_records(shards: list[str]) -> None:
    batches = list(
        tt.Loader(shards, 10, features=None, shuffle=False, transform=tfr.RecordBatch.tolist)
    )
    with tfr.Reader(shards) as reader:
        assert flat(batches) == list(reader)


# ---- order


@pytest.mark.parametrize("appended", ["leave", "next epoch"])
def test_a_state_goes_on_after_an_append(
    tmp_path: Path, appended: Any, output: dict[str, Any]
) -> None:
    def write(first: int, end: int) -> None:
        with tfr.ShardedWriter(tmp_path / "set", num_shards=1, append=True) as writer:
            for number in range(first, end):
                writer.write_example(example(number))

    write(0, 40)
    data = f"{tmp_path}/set-*"
    ours = tt.Loader(data, 10, features=ID, seed=3, **output)
    next(iter(ours))
    state = ours.state_dict()
    alone = tfr.Loader(data, 10, features=ID, seed=3)
    alone.load_state_dict(state)
    rest = ids(alone)
    write(40, 47)
    resumed = tt.Loader(data, 10, features=ID, seed=3, **output)
    with pytest.raises(ValueError, match="had 40 records, and has 47: 7 records were appended"):
        resumed.load_state_dict(state)
    resumed.load_state_dict(state, appended=appended)
    resumed.load_state_dict(state)  # as it was told
    old, new = (
        iter(tt.IterableDataset(each, 10, features=ID)) for each in (f"{data[:-1]}00001-*", data)
    )
    with pytest.raises(ValueError, match="The set had 7 records, and has 47: shards were added"):
        new.load_state_dict(old.state_dict())
    copied = pickle.loads(pickle.dumps(resumed)) if not output else resumed
    assert ids(copied) == rest
    assert sorted(flat(ids(copied))) == list(range(47 if appended == "next epoch" else 40))


def test_states_are_those_of_the_numpy_loader(shards: list[str]) -> None:
    ours, theirs = loader(shards), tfr.Loader(shards, 10, features=ID, seed=3)
    for _ in zip(ours, theirs, strict=True):
        assert ours.state_dict() == theirs.state_dict()
    assert ours.state_dict() == theirs.state_dict()
    with pytest.raises(ValueError, match="The state is of the order"):
        loader(shards, seed=4).load_state_dict(ours.state_dict())


def test_a_loop_that_chooses_its_epochs_resumes(shards: list[str], output: dict[str, Any]) -> None:
    ours = loader(shards, **output)
    whole = [ids(ours) for _ in range(3)]
    ours.set_epoch(1)
    batches = iter(ours)
    ids(next(batches) for _ in range(4))
    state = ours.state_dict()
    resumed = loader(shards, **output)
    resumed.load_state_dict(state)
    rest = []
    for epoch in range(state["epoch"], 3):
        resumed.set_epoch(epoch)
        rest.append(ids(resumed))
    assert rest == [whole[1][4:], whole[2]]


# ---- transforms and errors


def test_an_interrupt_loses_nothing(shards: list[str]) -> None:
    interrupted = []

    def transform(batch: Any) -> Any:
        if len(interrupted) < 2 and not interrupted.append(1):
            raise KeyboardInterrupt
        return batch

    ours, got = loader(shards, transform=transform, threads=2), []
    batches = iter(ours)
    while True:
        try:
            got += ids([next(batches)])
        except KeyboardInterrupt:
            continue
        except StopIteration:
            break
    assert got == ids(loader(shards))


def test_a_batch_begins_before_the_one_in_front_is_handed_out(shards: list[str]) -> None:
    events = []

    def begin(batch: Any) -> Any:
        events.append(f"begin {batch[0]}")
        return batch

    def finish(batch: Any) -> Any:
        events.append(f"finish {batch[0]}")
        return batch

    ours = tfr.Loader(shards, 10, features=ID, shuffle=False)
    ours._deliver_through(lambda batch: begin(batch["id"].tolist()), ahead=1, finish=finish)
    first = next(batches := iter(ours))
    assert (first, ours.step) == (list(range(10)), 1)
    next(batches)
    assert events == ["begin 0", "begin 10", "finish 0", "begin 20", "finish 10"]


# ---- devices


def test_without_cuda_nothing_is_pinned(shards: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert ids(loader(shards, pin_memory=True)) == ids(loader(shards))


def test_batches_are_put_on_the_device(shards: list[str]) -> None:
    for transform in (None, lambda batch: (batch, [batch["id"]], {"x": batch["dense"]})):
        for batch in tt.Loader(shards, 10, features=FEATURES, device="meta", transform=transform):
            first = batch if transform is None else batch[0]
            others = [] if transform is None else [batch[1][0], batch[2]["x"]]
            tensors = [first["id"], first["numbers"].values, first.valid, *others]
            assert {tensor.device.type for tensor in tensors} == {"meta"}
            assert first["name"][0].startswith(b"record ")


def test_copies_to_a_gpu_wait_for_each_other_and_keep_their_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The calls on imitated streams. Only a real GPU shows whether the calls are right."""
    from tfrfast.torch.copying import begin_copy, finish_copy

    calls: list[str] = []
    made: list[Any] = []

    class Stream:
        def __init__(self, name: Any) -> None:
            self.name = name
            made.append(name)

        def record_event(self) -> str:
            return f"event {len(calls)} of {self.name}"

        def wait_event(self, event: str) -> None:
            calls.append(f"{self.name} waits for {event}")

    @contextlib.contextmanager
    def on_stream(stream: Stream) -> Iterator[None]:
        calls.append(f"copy on {stream.name}")
        yield

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", on_stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream("user"))
    monkeypatch.setattr(
        torch.Tensor, "record_stream", lambda _, stream: calls.append(f"kept for {stream.name}")
    )
    meta = torch.device("meta")
    begun = [begin_copy({"x": torch.ones(2), "name": [b"a"]}, meta) for _ in range(2)]
    copies = [finish_copy(*each, meta) for each in begun]
    assert [copy["x"].device for copy in copies] == [meta, meta]
    used = ["user waits for event 1 of meta", "kept for user"]
    assert calls == ["copy on meta", "copy on meta", *used, used[0].replace("1", "2"), used[1]]
    assert made.count(meta) == 1  # the next epoch finds the memory of this one


if torch.cuda.is_available():

    @pytest.mark.parametrize("options", [{}, {"transform": slowly, "threads": 2}])
    def test_a_gpu_gets_the_same_batches(shards: list[str], options: dict[str, Any]) -> None:
        ours = loader(shards, device="cuda", **options)
        for _ in range(3):
            want = ids(loader(shards)) if ours.epoch == 0 else None
            batches = list(ours)
            assert all(batch["id"].is_cuda and batch.indices.is_cuda for batch in batches)
            assert want is None or ids(batches) == want
            assert sorted(flat(ids(batches))) == list(range(NUM_RECORDS))


# ---- ranks


def be_rank(monkeypatch: pytest.MonkeyPatch, rank: int, world: int) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: rank)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: world)


def test_ranks_are_torch_distributeds_even_if_it_is_initialized_later(
    shards: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made_before = loader(shards)
    be_rank(monkeypatch, 1, 3)
    for ours in (made_before, loader(shards)):
        assert (ours.plan.rank, ours.plan.world, ours.plan.remainder) == (1, 3, "pad")
        assert ids(ours) == ids(loader(shards, rank=1, world=3))
        monkeypatch.setattr(torch.distributed, "is_initialized", lambda: False)
        assert ours.plan.world == 3  # the group has ended, and the rank stays
        assert pickle.loads(pickle.dumps(ours)).plan.world == 3
        be_rank(monkeypatch, 1, 3)
    assert loader(shards, rank=0, world=1).plan.world == 1
    with pytest.raises(ValueError, match="rank and world together"):
        loader(shards, rank=0)


def test_a_rank_that_cannot_know_its_number_says_so(
    shards: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    ours = loader(shards)
    with pytest.raises(RuntimeError, match=r"WORLD_SIZE is 4.*init_process_group\(\) first"):
        iter(ours)
    assert flat(ids(loader(shards, rank=0, world=1)))
    be_rank(monkeypatch, 0, 4)
    assert len(ours) == 3


def test_threads_are_the_ranks_share_of_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    from tfrfast.torch import share

    monkeypatch.setattr(share._native, "usable_processors", lambda: 16)
    assert share.share_of_processors() == 16
    for ranks, threads in (("1", 16), ("5", 3), ("40", 1), ("", 16), ("0", 16)):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", ranks)
        assert share.share_of_processors() == threads


# ---- processes, options, memory


def test_a_pickled_copy_goes_on_from_what_was_delivered(
    shards: list[str], output: dict[str, Any]
) -> None:
    ours = loader(shards, **output)
    ids(ours)
    batches = iter(ours)
    ids(next(batches) for _ in range(4))
    copy = pickle.loads(pickle.dumps(ours))
    assert ids(copy) == ids(batches)
    assert ids(copy) == ids(ours)


def test_reader_options_go_to_the_reader(shards: list[str]) -> None:
    with pytest.raises(TypeError, match="verify, io: options of a Reader"):
        loader(tfr.Reader(shards), verify="header", io="pread")
    assert loader(shards, verify="header").reader._options["verify"] == "header"
    with pytest.raises(TypeError, match="prefetsh"):
        loader(shards, prefetsh=2)
    with pytest.raises(ValueError, match="threads is 0, but must be from 1"):
        loader(["no such file"], threads=0)


def test_an_error_names_the_argument(shards: list[str]) -> None:
    with pytest.raises(TypeError, match=r"device must be .*, not 1\.5\."):
        loader(shards, device=1.5)
    with pytest.raises(TypeError, match="transform is a function of a batch, not int"):
        loader(["no such file"], transform=5)


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_memory_does_not_grow_over_50_epochs(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with tfr.Writer(path) as writer:
        writer.write_batch(tfr.encode_examples({"x": np.zeros((256, 4096), np.float32)}))
    features = {"x": tfr.FixedLen((4096,), "float32")}
    ours = tt.Loader(path, 128, features=features, transform=lambda batch: batch, threads=2)
    sizes = []
    for _ in range(50):
        assert sum(len(batch["x"]) for batch in ours) == 256
        sizes.append(resident_bytes())
    assert sizes[-1] - sizes[9] < 32 << 20  # one batch kept in each epoch would be 80 MiB


# ---- torch.compile


def test_a_compiled_step_takes_the_tensors(shards: list[str]) -> None:
    weights = torch.ones(3, requires_grad=True)

    @torch.compile(backend="eager", fullgraph=True)
    def step(dense: Any, number: Any) -> Any:
        return ((dense @ weights - number) ** 2).mean()

    for batch in tt.Loader(shards, 10, features=FEATURES, remainder="drop"):
        loss = step(batch["dense"], batch["id"])
        loss.backward()
        assert loss.item() == pytest.approx(
            float(((batch["dense"].sum(1) - batch["id"]) ** 2).mean()), rel=1e-5
        )
