"""Runs the code of the pages about PyTorch, and about formats that PyTorch's users come from."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from quoted_code import run_page, write_shards
from tfrecord_model import shard_of

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.usefixtures("own_folder"), pytest.mark.filterwarnings("error")]


def test_pytorch_learns() -> None:
    torch.manual_seed(0)
    done = run_page("docs/start-pytorch.md")
    assert done["loss"].item() < 1
    assert done["loader"].epoch == 5


def test_pytorch() -> None:
    write_shards("data/train")
    received: list[tuple[Any, ...]] = []
    given = {
        "torch": torch,
        "DataLoader": torch.utils.data.DataLoader,
        "features": {"image": tfr.FixedLen((), "bytes"), "label": tfr.FixedLen((), "int64")},
        "model": torch.nn.Linear(2, 2),
        "train_step": lambda *columns: received.append(columns),
        "decode": lambda jpeg: torch.zeros(2, 2),
        "augment_one": lambda record: record,
    }
    done = run_page("docs/pytorch.md", given, {"num_workers=8": "num_workers=2"})
    assert len(received) == 2
    assert done["checkpoint"]["input"] == done["loader"].state_dict()


def test_from_dali() -> None:
    write_shards("data/train")
    fed: list[Any] = []

    class Operators:
        """Does the work of DALI's operators that the page uses."""

        decoders = types.SimpleNamespace(image=lambda jpegs, device: jpegs)

        @staticmethod
        def external_source(source: Any, num_outputs: int, cycle: str) -> list[Any]:
            fed.extend(source)
            return [None] * num_outputs

        @staticmethod
        def random_resized_crop(images: Any, size: int) -> Any:
            return images

    given = {
        "np": np,
        "fn": Operators,
        "pipeline_def": lambda **options: lambda function: function,
        "train_step": lambda dense, label: None,
    }
    page = run_page("docs/dali.md", given, {', device="cuda")': ")"})
    page["pictures"]()
    assert [len(jpegs) for jpegs, _ in fed] == [256, 44]
    Path("shard").write_bytes(shard_of([b"", b"record", b"x"]))
    page["write_index"]("shard", "shard.idx")
    assert Path("shard.idx").read_text() == "0 16\n16 22\n38 17\n"


def test_from_webdataset() -> None:
    write_shards("data/train")
    steps: list[int] = []
    given = {
        "decode": lambda batch: (batch["jpg"], batch["cls"]),
        "train_step": lambda images, labels: steps.append(len(labels)),
    }
    run_page("docs/webdataset.md", given)
    assert steps == [256, 44]
