"""Names each cause of slowness, and its remedy."""

from __future__ import annotations

from collections.abc import Iterator

from tfrfast.base.sizes import counted, format_bytes
from tfrfast.cli.doctor.data import DataFacts
from tfrfast.cli.doctor.machine import MachineFacts

__all__ = ["advice_on"]

_SMALL_SHARD_BYTES = 1 << 20
_MANY_SHARDS = 256
_REQUESTS_AT_ONCE = 128


def advice_on(machine: MachineFacts, data: DataFacts | None) -> list[str]:
    """Returns sentences, the most important first. Empty if nothing is known to be slow."""
    found = [] if data is None else list(_on_data(machine, data))
    return found + list(_on_machine(machine))


def _on_data(machine: MachineFacts, data: DataFacts) -> Iterator[str]:
    for place in data.places:
        if place.request_ms is not None:
            yield (
                f"Each request to {place.mounted_at} takes {place.request_ms:.0f} ms, even for a "
                "few bytes. Records in order come in large requests. An exact shuffle makes "
                f"a request for nearly every record, {_REQUESTS_AT_ONCE} at once, so at most "
                f"{_shuffled_per_s(place.request_ms):,.0f} a second: use tfr.BlockShuffle, or keep "
                "the bytes on a disk with cache=tfr.DiskCache(...)."
            )
        elif not place.is_mapped and place.bytes:
            yield (
                f"{place.mounted_at} is of the kind {place.filesystem}, so its shards are read "
                "with pread and not mapped, and reads may wait for a network. If epochs wait, copy "
                "the shards to a local disk, or use tfr.BlockShuffle."
            )
    is_remote = any(place.request_ms is not None for place in data.places)
    if data.no_index is not None:
        yield (
            "Not all shards have an index that fits, so the first reader has to scan "
            f"{format_bytes(data.bytes)}. `tfrfast index` does that ahead of time."
            + (" With --publish, it does so for everybody." if is_remote else "")
        )
        if not machine.cache_is_used:
            yield (
                "Indexes cannot be kept in the index cache, so every process scans again. "
                f"`tfrfast index{' --publish' if is_remote else ''}` keeps them beside the data."
            )
    here_bytes = sum(place.bytes for place in data.places if place.request_ms is None)
    if here_bytes > machine.memory_bytes:
        yield (
            f"The shards have {format_bytes(here_bytes)}, and the machine has "
            f"{format_bytes(machine.memory_bytes)} of memory: each epoch reads from the disk. "
            "If that is slow, use tfr.BlockShuffle, which reads whole blocks."
        )
    if set(data.compression) - {"none"}:
        yield (
            "Shards are compressed, so about 1 MiB is inflated for each record that is read at "
            "random. decompressed_cache=tfr.DiskCache(folder, limit) keeps the inflated bytes on a "
            "disk, and `tfrfast shuffle` writes plain shards."
        )
        if machine.inflates_with is None:
            yield "There is no zlib here, so compressed shards cannot be read. Install zlib1g."
        elif machine.inflates_with != "ISA-L":
            yield (
                f"{machine.inflates_with} inflates. ISA-L takes about half the time: "
                "pip install isal."
            )
    if data.shards >= _MANY_SHARDS and data.bytes < data.shards * _SMALL_SHARD_BYTES:
        yield (
            f"There are {data.shards:,} shards of {format_bytes(data.bytes / data.shards)} on "
            "average. Opening each takes time: `tfrfast shuffle` merges them."
        )


def _shuffled_per_s(request_ms: float) -> float:
    return _REQUESTS_AT_ONCE * 1000 / max(request_ms, 0.1)


def _on_machine(machine: MachineFacts) -> Iterator[str]:
    if machine.crc32c_kernel == "portable":
        yield (
            "This processor has no instruction for CRC-32C that tfrfast knows. Checking records "
            "takes several times longer than elsewhere."
        )
    if machine.load > machine.processors:
        yield (
            f"The machine is busy: {machine.load:.1f} programs want its "
            f"{counted(machine.processors, 'processors')}. Reading is slower than on an idle "
            "machine, and timings made now say little."
        )
    if machine.usable_processors < machine.processors:
        yield (
            f"This process may use {machine.usable_processors} of {machine.processors} processors: "
            "its affinity or its container limits it. By default, there are as many threads."
        )
    if not machine.cache_folder:
        yield "There is no index cache, because you have no home folder. Set TFRFAST_CACHE_DIR."
    elif not machine.cache_is_used:
        yield (
            f"The index cache {machine.cache_folder} is not used: it cannot be written to, or "
            "others may write to it, too. Set TFRFAST_CACHE_DIR to a folder of your own."
        )
    elif machine.cache_bytes > 0.9 * machine.cache_limit_bytes:
        yield (
            f"The index cache holds {format_bytes(machine.cache_bytes)} of at most "
            f"{format_bytes(machine.cache_limit_bytes)}, so old indexes are removed and built "
            "again. Set TFRFAST_CACHE_BYTES, or keep indexes beside the data with `tfrfast index`."
        )
