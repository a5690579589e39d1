"""What the pages about JAX and Grain quote."""

from __future__ import annotations

from typing import Any

import pytest

from quoted_code import run_page, write_shards

jax = pytest.importorskip("jax")

pytestmark = pytest.mark.usefixtures("own_folder")


def test_jax_learns() -> None:
    done = run_page("docs/start-jax.md")
    assert float(done["loss"]) < 2
    assert done["loader"].epoch == 5


def test_jax() -> None:
    write_shards("data/train")
    given = {
        "jax": jax,
        "NamedSharding": jax.sharding.NamedSharding,
        "PartitionSpec": jax.sharding.PartitionSpec,
        "train_step": lambda state, image, label: state + label.sum(),
        "state": 0,
    }
    assert run_page("docs/jax.md", given)["state"] > 0


def test_maxtext() -> None:
    pytest.importorskip("grain")
    write_shards("c4/train")
    steps: list[Any] = []
    run_page("docs/maxtext.md", {"tokenize": lambda row: row["text"], "train_step": steps.append})
    assert len(steps) == 300 + 2


def test_grain() -> None:
    pytest.importorskip("grain")
    write_shards("data/train")
    steps: list[Any] = []
    given = {"augment": lambda batch: batch, "train_step": lambda *columns: steps.append(columns)}
    run_page("docs/grain.md", given)
    assert len(steps) == 10 * 2
