"""Steps in Grain and JAX: each one once."""

from pathlib import Path

import pytest

import tfrfast as tfr
from step_files import FEATURES, numbers_in, open_steps

grain = pytest.importorskip("grain")
jax = pytest.importorskip("jax")
tg = pytest.importorskip("tfrfast.grain", exc_type=ModuleNotFoundError)
tj = pytest.importorskip("tfrfast.jax", exc_type=ModuleNotFoundError)


def test_every_step_comes_once(tmp_path: Path) -> None:
    steps = open_steps(tmp_path / "data")
    source = tg.Source(steps, features=FEATURES)
    rows = grain.MapDataset.source(source).shuffle(seed=1).to_iter_dataset()
    batches = tg.IterDataset(tfr.Loader(steps, 8, features=FEATURES, seed=2))
    numbers = {name: FEATURES[name] for name in ("steps/n", "steps/a")}
    loader = tj.Loader(tfr.Loader(steps, 8, features=numbers, seed=2))
    for found in (
        [int(row["steps/n"]) for row in rows],
        [number for batch in batches for number in numbers_in(batch)],
        [int(number) for batch in loader for number in batch["steps/n"]],
    ):
        assert sorted(found) == list(range(100))
