"""Three small data sets of Examples for mixtures. Each set lacks a feature of another set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tfrfast as tfr
from record_files import write_shard

SIZES = {"web": 50, "code": 30, "talk": 7}


def example(name: str, number: int) -> dict[str, Any]:
    words = list(range(1, number % 6 + 2))
    features: dict[str, Any] = {"id": number, "name": name.encode(), "words": words}
    if name == "web":
        features["score"] = [number / 2]
    if name == "code":
        features["tokens"] = list(range(number % 5))
    return features


def write_sets(folder: Path) -> dict[str, list[str]]:
    """Writes two shards for each set. The first shard of a set may be empty."""
    shards = {}
    for name, size in SIZES.items():
        records = [tfr.encode_example(example(name, number)) for number in range(size)]
        cut = size // 3 if name != "talk" else 0
        parts = records[:cut], records[cut:]
        shards[name] = [write_shard(folder / f"{name}-{i}", part) for i, part in enumerate(parts)]
    return shards


def mixture_of(shards: dict[str, list[str]], **options: Any) -> tfr.Mixture:
    weights = {"web": 5, "code": 3, "talk": 1}
    sources = {name: (tfr.Reader(paths), weights[name]) for name, paths in shards.items()}
    return tfr.Mixture(sources, **{"length": 200, "seed": 3, **options})
