"""Shards with random damage: readers return every good record, and no other bytes."""

from __future__ import annotations

import random
from pathlib import Path

from expectations import CLEAR_ERRORS, outcome, some_records, write

import tfrfast as tfr
from tfrecord_model import scan


def damage(data: bytearray, chosen: random.Random) -> bytearray:
    at = chosen.randrange(len(data) + 1)
    end = min(len(data), at + chosen.choice([1, 4, 12, 100, 5000]))
    kind = chosen.choice(["flip", "zero", "overwrite", "cut", "erase", "insert", "repeat"])
    if kind == "flip" and at < len(data):
        data[at] ^= 1 << chosen.randrange(8)
    elif kind == "zero":
        data[at:end] = bytes(end - at)
    elif kind == "overwrite":
        data[at:end] = chosen.randbytes(end - at)
    elif kind == "cut":
        del data[at:]
    elif kind == "erase":
        del data[at:end]
    elif kind == "insert":
        data[at:at] = chosen.randbytes(chosen.randrange(1, 40))
    elif kind == "repeat":
        data[at:at] = data[at:end]
    return data


def attack(chosen: random.Random, folder: Path) -> str:
    path = folder / "shard"
    compression = chosen.choice([None, None, "GZIP", "ZLIB"])
    records = some_records(chosen, "good")
    write(path, records, compression)
    indexed = chosen.random() < 0.5
    if indexed:
        tfr.Reader(path, index=chosen.choice(["auto", folder / "indexes"])).close()
    data = bytearray(path.read_bytes())
    for _ in range(chosen.randrange(1, 5)):
        data = damage(data, chosen)
    path.write_bytes(data)

    options = {
        "io": chosen.choice(["mmap", "pread"]),
        "index": chosen.choice(["auto", "memory"]),
        "compression": chosen.choice(["auto", compression]),
        "threads": chosen.choice([1, 2]),
    }
    strict = outcome(lambda: list(tfr.Reader(path, **options)))
    # A shard with damaged first bytes may look like another compression, or like none.
    lenient = outcome_or_wrong_compression(path, options)
    if compression is not None:
        written = set(records)
        for found in (strict, lenient):
            if isinstance(found, list) and options["compression"] == compression:
                assert all(record in written for record in found), "a record nobody wrote"
        return f"damage, {compression}"
    frames, damages = scan(bytes(data))
    good = [frame.payload for frame in frames if frame.payload_is_good]
    if isinstance(lenient, list):
        assert lenient == good, "skipping gives other records than the model"
    if isinstance(strict, list):
        assert not damages, "damage went unseen"
        assert strict == [frame.payload for frame in frames], "a bad payload went unseen"
    else:
        assert damages or len(good) < len(frames) or looks_compressed(data), f"{strict} for nothing"
    return "damage, plain"


def outcome_or_wrong_compression(path: Path, options: dict[str, object]) -> object:
    try:
        return list(tfr.Reader(path, on_corruption="skip", **options))  # type: ignore[arg-type]
    except CLEAR_ERRORS as error:
        return error
    except ValueError as error:
        if "compress" not in str(error):
            raise
        return error


def looks_compressed(data: bytes) -> bool:
    return data[:2] == b"\x1f\x8b" or (data[:1] == b"\x78" and int.from_bytes(data[:2]) % 31 == 0)
