"""The splits of a shuffle: their names, records and shards."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import SupportsIndex

from tfrfast.base.arguments import UNLIMITED, integer


@dataclass(frozen=True)
class SplitTarget:
    """A split, or the whole output."""

    name: str
    prefix: str
    share: float
    num_shards: int  # 0 if max_bytes decides
    max_bytes: int


def split_targets_of(
    out: str,
    num_shards: SupportsIndex | Mapping[str, SupportsIndex] | None,
    max_bytes: SupportsIndex | None,
    splits: Mapping[str, float] | None,
) -> list[SplitTarget]:
    if (num_shards is None) == (max_bytes is None):
        raise ValueError("Say either num_shards or max_bytes.")
    size = UNLIMITED if max_bytes is None else integer("max_bytes", max_bytes, 1, UNLIMITED)
    shares = {"": 1.0} if splits is None else {str(k): float(v) for k, v in splits.items()}
    if not shares or min(shares.values()) < 0 or not abs(sum(shares.values()) - 1) < 1e-6:
        raise ValueError(f"The shares of splits must add up to 1, not {sum(shares.values())}.")
    for name in shares:
        if "/" in name or (not name and splits is not None):
            raise ValueError(f"{name!r} cannot be part of a file's name.")
    if num_shards is None:
        counts = dict.fromkeys(shares, 0)
    elif isinstance(num_shards, Mapping):
        if set(num_shards) != set(shares):
            raise ValueError("num_shards must name the same splits as splits does.")
        counts = {k: integer(f"num_shards[{k!r}]", v, 1, 10**6) for k, v in num_shards.items()}
    else:
        counts = _in_proportion(integer("num_shards", num_shards, len(shares), 10**6), shares)
    return [
        SplitTarget(name, _prefix(out, name), share, counts[name], size)
        for name, share in shares.items()
    ]


def _in_proportion(count: int, shares: Mapping[str, float]) -> dict[str, int]:
    """Divides `count` by largest remainders. Each name gets at least 1."""
    counts = {name: max(1, int(count * share)) for name, share in shares.items()}
    by_need = sorted(shares, key=lambda name: counts[name] - count * shares[name])
    while sum(counts.values()) < count:
        name = min(by_need, key=lambda name: counts[name] - count * shares[name])
        counts[name] += 1
    while sum(counts.values()) > count:
        name = max(
            (name for name in by_need if counts[name] > 1),
            key=lambda name: counts[name] - count * shares[name],
        )
        counts[name] -= 1
    return counts


def _prefix(out: str, split: str) -> str:
    in_folder = out.endswith("/") or os.path.isdir(out)
    if split:
        return os.path.join(out, split) if in_folder else f"{out}-{split}"
    if in_folder:
        raise ValueError(
            f"{out!r} names a folder, but shards need a beginning of their names, too, such as "
            f"{os.path.join(out, 'train')!r}."
        )
    return out
