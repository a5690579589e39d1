"""Runs the code of the pages about JAX and Grain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from quoted_code import ROOT, run_page, write_shards
from tfrfast import _native

jax = pytest.importorskip("jax")

pytestmark = pytest.mark.usefixtures("own_folder")


def test_jax_learns() -> None:
    done = run_page("docs/start-jax.md")
    assert float(done["loss"]) < 2
    assert done["loader"].epoch == 5


@pytest.mark.skipif(not _native.DECODES_IMAGES, reason="tfrfast was built without codecs")
def test_images() -> None:
    torch = pytest.importorskip("torch")
    import tfrfast.jax
    import tfrfast.torch

    image = (ROOT / "tests/golden/images/subsampled.jpg").read_bytes()
    write_shards("imagenet/train", {"image": [image] * 300, "label": np.arange(300)})
    with tfr.ShardedWriter("data/robot.tfrecord", num_shards=1) as writer:
        writer.write_example({"steps/image": [image] * 5})
    batches: list[Any] = []
    given = {
        "tfrfast": tfrfast,
        "model": torch.nn.Flatten(),
        "criterion": lambda pixels, labels: batches.append(pixels),
        "train_step": lambda state, *columns: batches.append(columns[0]),
        "state": None,
    }
    done = run_page("docs/images.md", given, {'device="cuda"': 'device="cpu"'})
    assert [batch.shape for batch in batches] == [
        (256, 3 * 224**2),
        (44, 3 * 224**2),
        (256, 3, 224, 224),
    ]
    assert done["picture"].shape == (36, 52, 3)


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
