"""Shuffling, resharding, merging and splitting data sets larger than memory."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Mapping
from typing import SupportsIndex

from tfrfast import _native
from tfrfast._base.arguments import integer, seed_number
from tfrfast._base.paths import Paths, expand_paths, written_file
from tfrfast._shuffle.job import ShuffleJob
from tfrfast._shuffle.publication import Output, Publication, Shuffled, Target
from tfrfast._shuffle.work_folder import WorkFolder
from tfrfast.writer import Compression, FilePath, Index, compression_level

__all__ = ["Shuffled", "parse_bytes", "shuffle"]

_UNLIMITED = 2**63 - 1
_MIN_MEMORY_BYTES = 16 << 20
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
    """Writes all records of `paths` to new shards, in a uniformly random order.

        made = tfr.shuffle("in/*", "out/train", num_shards=64, seed=1)
        reader = tfr.Reader(made.paths)

    Returns a `Shuffled`: the new paths, the counts and the content hash.

    Args:
      paths: a path, a glob, or an iterable of either. There may be a million small files.
      out: the beginning of the new shards' names, folder included: `out/train` makes
        `out/train-00000-of-00064` and so on. With `splits`, each split's name follows:
        `out/birds` makes `out/birds-test-00000-of-00003`, `out/` makes `out/test-00000-of-00003`.
      num_shards: the number of shards. With `splits`, it is the number for all splits together,
        which they share in proportion, with at least one each; or a dict with the number for each
        split. Shards differ by at most one record.
      max_bytes: instead of `num_shards`, the largest size of a shard.
      seed: determines the order, which depends neither on `max_memory` nor on how the shards are
        cut.
      splits: a dict of each split's name and its share of the records. The shares add up to 1.
        Which record is in which split is as random as the order.
      max_memory: about how much memory this may take: bytes, or a string like "512MiB". Data larger
        than a quarter of it is written and read twice, other data once. The largest record must
        fit.
      overwrite: True replaces shards of these names. False raises FileExistsError if there are any.
      compression, level, index, sync: as for `tfr.Writer`. The input may be compressed or not;
        without `compression` the new shards are plain.
      work: where to make the folder for intermediate files, which are as large as the data. It must
        be on the same filesystem as `out`. By default it is the sibling folder of the new shards'
        folder.
      progress: True or False shows or hides a bar on stderr. By default it appears on a terminal,
        after a second.

    Nothing appears under the new names before all shards are complete and their content hash is
    that of the input. If the call is interrupted, the same call resumes where it stopped.

    Every record's checksum is verified. Raises CorruptRecordError or TruncatedRecordError for
    damage, OSError if a file cannot be read or written, and ValueError for arguments that
    contradict each other.
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
    """ "1GiB" -> 2**30. Also understands "512M", "200MB" and "1000"; units are powers of 1024."""
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
    """Divides `count` by largest remainders, with at least one for each name."""
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
    return integer("max_memory", memory, _MIN_MEMORY_BYTES, _UNLIMITED)


def _work_folder(out: str, work: str | os.PathLike[str] | None) -> str:
    """The folder that belongs to this shuffle alone."""
    folder, name = os.path.split(out)
    if work is not None:
        # Shuffles to the same names in different folders may share `work`.
        where = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:8]
        return os.path.join(os.fsdecode(written_file(work)), f"shuffle-{name}-{where}")
    os.makedirs(folder or ".", exist_ok=True)
    sibling = os.path.dirname(_native.sibling_index_path(os.fsencode(os.path.join(folder, "any"))))
    with contextlib.suppress(OSError):
        os.makedirs(sibling, exist_ok=True)
        if os.stat(sibling).st_dev == os.stat(folder or ".").st_dev:
            return os.path.join(sibling, f"shuffle-{name}")
    # Shards are moved to their places at the end, which only works within one filesystem.
    return os.path.join(folder, f".tfrfast-shuffle-{name}")
