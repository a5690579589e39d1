"""Steps in PyTorch: each one once, over ranks and workers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr

torch = pytest.importorskip("torch")
tt = pytest.importorskip("tfrfast.torch")

from torch.utils.data import DataLoader  # noqa: E402

FEATURES = {"steps/n": tfr.FixedLen((), "int64"), "steps/a": tfr.FixedLen((4, 2), "float32")}


@pytest.fixture
def steps(tmp_path: Path) -> tfr.Steps:
    path = str(tmp_path / "data")
    first = 0
    with tfr.Writer(path) as writer:
        for count in (30, 1, 0, 69):
            numbers = np.arange(first, first + count)
            actions = np.repeat(numbers, 2).astype(np.float32)
            made = {"steps/n": numbers, "steps/a": actions, "id": [7]}
            writer.write(tfr.encode_example({k: v for k, v in made.items() if len(v)}))
            first += count
    return tfr.Steps(path, along="steps/", windows={"steps/a": tfr.Window(after=3)})


def test_a_loader_deals_steps_to_ranks(steps: tfr.Steps) -> None:
    seen: list[int] = []
    for rank in range(2):
        share: dict[str, Any] = {"rank": rank, "world": 2, "remainder": "keep"}
        for batch in tt.Loader(steps, 8, features=FEATURES, seed=2, **share):
            seen += batch["steps/n"].tolist()
            assert batch["steps/a"][:, 0, 0].tolist() == batch["steps/n"].tolist()
    assert sorted(seen) == list(range(100))


def test_workers_read_steps(steps: tfr.Steps) -> None:
    dataset = tt.IterableDataset(steps, 8, features=FEATURES, seed=2, remainder="keep")
    batches = DataLoader(dataset, batch_size=None, num_workers=2)
    assert sorted(n for batch in batches for n in batch["steps/n"].tolist()) == list(range(100))
    assert tt.Dataset(steps, features=FEATURES)[70]["steps/n"] == 70
