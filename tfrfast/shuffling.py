"""Shuffling, resharding, merging and splitting data sets larger than memory."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Mapping
from typing import SupportsIndex

from tfrfast import _native
from tfrfast._arguments import integer, seed_number
from tfrfast._paths import Paths, expand_paths, written_file
from tfrfast._shuffle_job import ShuffleJob
from tfrfast._shuffle_publication import Output, Publication, Shuffled, Target
from tfrfast._shuffle_work import WorkFolder
from tfrfast.writer import Compression, FilePath, Index, compression_level

__all__ = ["Shuffled", "parse_bytes", "shuffle"]

_UNLIMITED = 2**63 - 1
_LEAST_MEMORY = 16 << 20
_SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def shuffle(
    paths: Paths,
    out: FilePath,
    *,
    num_shards: SupportsIndex | Mapping[str, SupportsIndex] | None = None,
    max_bytes: SupportsIndex | None = None,
    seed: SupportsIndex = 0,
    splits: Mapping[str, float] | None = None,
    max_memory: int | str = "1GiB",
    overwrite: bool = False,
    compression: Compression | None = None,
    level: int | None = None,
    index: Index = True,
    sync: bool = True,
    work: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Shuffled:
    """Writes all records of `paths` in a uniformly random order that `seed` determines.

    Args:
      paths: a path, a glob, or an iterable of either; a million small files will do.
      out: the beginning of the new shards' names, folder included: `out/train` makes
        `out/train-00000-of-00064` and so on. With `splits`, each split's name follows:
        `out/birds` makes `out/birds-test-00000-of-00003`, `out/` makes `out/test-00000-of-00003`.
      num_shards: how many. With `splits`, of all together, in proportion and at least one each; or
        a dict that says it for each. Shards differ by at most one record.
      max_bytes: instead of `num_shards`, how large a shard may get.
      seed: the order. It does not depend on `max_memory`, nor on how the shards are cut.
      splits: each split's name and its share of the records; the shares add up to 1. Which record
        is in which split is as random as the order.
      max_memory: how much this may take, about: bytes, or "512MiB". Data larger than a quarter of
        it is written and read twice, else once; a single larger record must fit, too.
      overwrite: False makes it an error if there are shards of these names, of any number.
      compression, level, index, sync: as for `tfr.Writer`. What is read may be compressed either way;
        without `compression` this makes plain shards of it.
      work: where to make a folder for intermediate files, as large as the data; on the same
        filesystem as `out`. By default the sibling folder of the new shards'.
      progress: a bar on stderr; by default on a terminal, after a second.

    Nothing appears under the new names before everything is complete and its content hash is that of
    what was read. If it is interrupted, the same call goes on where it was; see `work`.
    Every record's checksum is verified; damage is an error.
    """
    name = os.fsdecode(written_file(out))
    target = Target(
        outputs=_outputs(name, num_shards, max_bytes, splits),
        seed=seed_number(seed),
        overwrite=overwrite,
        index=index,
        sync=sync,
        compression=compression,
        level=level,
    )
    compression_level(compression, level)
    memory = _memory(max_memory)
    folder = WorkFolder(_work_folder(name, work))
    with folder.held():
        unfinished = Publication(folder, target)
        if unfinished.replaces_its_input():
            return unfinished.finish()
        return ShuffleJob(expand_paths(paths), target, memory, folder, progress).run()


def parse_bytes(text: str) -> int:
    """ "1GiB" -> 2**30; "512M", "200MB" and "1000" are understood, too, in powers of 1024."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", text, re.IGNORECASE)
    if match is None:
        raise ValueError(f"expected a size like 512M or 2GiB, not {text!r}.")
    return int(float(match[1]) * _SUFFIXES[match[2].upper()])


def _outputs(
    out: str,
    num_shards: SupportsIndex | Mapping[str, SupportsIndex] | None,
    max_bytes: SupportsIndex | None,
    splits: Mapping[str, float] | None,
) -> list[Output]:
    if (num_shards is None) == (max_bytes is None):
        raise ValueError("Say either num_shards or max_bytes.")
    size = _UNLIMITED if max_bytes is None else integer("max_bytes", max_bytes, 1, _UNLIMITED)
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
        Output(name, _prefix(out, name), share, counts[name], size)
        for name, share in shares.items()
    ]


def _in_proportion(count: int, shares: Mapping[str, float]) -> dict[str, int]:
    """`count` dealt out by largest remainders, one at least to each."""
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


def _memory(max_memory: int | str) -> int:
    memory = parse_bytes(max_memory) if isinstance(max_memory, str) else max_memory
    return integer("max_memory", memory, _LEAST_MEMORY, _UNLIMITED)


def _work_folder(out: str, work: str | os.PathLike[str] | None) -> str:
    """A folder that this shuffle may do with what it likes."""
    folder, name = os.path.split(out)
    if work is not None:
        # Shuffles to names that are alike in different folders may share it.
        where = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:8]
        return os.path.join(os.fsdecode(written_file(work)), f"shuffle-{name}-{where}")
    os.makedirs(folder or ".", exist_ok=True)
    sibling = os.path.dirname(_native.sibling_index_path(os.fsencode(os.path.join(folder, "any"))))
    with contextlib.suppress(OSError):
        os.makedirs(sibling, exist_ok=True)
        if os.stat(sibling).st_dev == os.stat(folder or ".").st_dev:
            return os.path.join(sibling, f"shuffle-{name}")
    # Shards are moved to their place at the end, which only works inside one filesystem.
    return os.path.join(folder, f".tfrfast-shuffle-{name}")
