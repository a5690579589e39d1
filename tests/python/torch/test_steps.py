"""Steps in PyTorch: each one once, over ranks and workers."""

from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from step_choices import COUNT, choosing, row_of, write_choices
from step_choices import FEATURES as CHOSEN
from step_files import FEATURES, numbers_in, open_steps

torch = pytest.importorskip("torch")
tt = pytest.importorskip("tfrfast.torch")

from torch.utils.data import DataLoader  # noqa: E402


@pytest.fixture
def steps(tmp_path: Path) -> tfr.Steps:
    return open_steps(tmp_path / "data")


def test_workers_read_steps(steps: tfr.Steps) -> None:
    seen: list[int] = []
    for rank in range(2):
        share: dict[str, Any] = {"rank": rank, "world": 2, "remainder": "keep"}
        shared = tt.IterableDataset(steps, 8, features=FEATURES, seed=2, **share)
        for batch in DataLoader(shared, batch_size=None, num_workers=2):
            seen += numbers_in(batch)
    assert sorted(seen) == list(range(100))
    dataset = tt.Dataset(steps, features=FEATURES)
    assert dataset[70]["steps/n"] == 70
    sampler = tt.BatchSampler(len(steps), 8, seed=2, remainder="keep")
    batches = DataLoader(dataset, batch_sampler=sampler, num_workers=2, collate_fn=list)
    rows = [int(row["steps/n"]) for batch in batches for row in batch]
    assert sorted(rows) == list(range(100))


@pytest.mark.parametrize("road", ["loader", "iterable", "sampler"])
def test_each_epoch_draws_anew(tmp_path: Path, road: str) -> None:
    steps = choosing(write_choices(tmp_path / "choices.tfrecord"))
    batches: Any
    if road == "loader":
        batches = tt.Loader(steps, 9, features=CHOSEN, seed=1)
    elif road == "iterable":
        batches = tt.IterableDataset(steps, 9, features=CHOSEN, seed=1)
    else:
        sampler = tt.BatchSampler(len(steps), 9, seed=1)
        batches = DataLoader(
            tt.Dataset(steps, features=CHOSEN),
            batch_sampler=sampler,
            collate_fn=tt.collate,
        )
    for epoch in range(2):
        seen = []
        for batch in batches:
            for step, camera, text in zip(
                batch["steps/n"].tolist(), batch["camera"], batch["text"], strict=True
            ):
                assert (camera, text) == row_of(epoch, step)
                seen.append(step)
        assert sorted(seen) == list(range(COUNT))
