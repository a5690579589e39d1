"""Runs the code of the page about Ray."""

from __future__ import annotations

from typing import Any

import pytest

import tfrfast as tfr
from quoted_code import run_page, write_shards

ray = pytest.importorskip("ray")


@pytest.mark.usefixtures("own_folder")
def test_ray(local_ray: Any) -> None:
    write_shards("data/train")
    with tfr.Writer("data/robots-0") as writer:
        writer.write(tfr.encode_example({"steps/action": [1, 2, 3]}))
    given = {
        "embed": lambda batch: {"vector": batch["label"] * 2.0},
        "numbers": [5, 1, 2],
        "GLOBAL_BATCH": 64,
    }
    run_page("docs/ray.md", given, {"num_shards=64": "num_shards=2"})
    assert len(tfr.Reader("out/cats-*")) == 3
    assert len(tfr.Reader("out/train-*")) == 300
