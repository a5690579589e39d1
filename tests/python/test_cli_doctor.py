"""`tfrfast doctor` reports facts, and gives the right advice."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import tfrfast as tfr
from cli_files import run, write_examples
from tfrfast.cli.doctor.advice import advice_on
from tfrfast.cli.doctor.data import DataFacts, Filesystem, Mounts, ShardGroup, look_at_data
from tfrfast.cli.doctor.machine import MachineFacts, look_at_machine

FINE = look_at_machine()._replace(
    crc32c_kernel="avx2",
    processors=4,
    usable_processors=4,
    load=3.5,
    memory_bytes=1 << 34,
    inflates_with="ISA-L",
    cache_folder="/home/u/.cache/tfrfast/index",
    cache_is_used=True,
    cache_bytes=0,
    cache_limit_bytes=1 << 32,
)
LOCAL = ShardGroup("ext4", "/", 4, 1 << 30, is_mapped=True, identity_lasts=True)
INDEXED = DataFacts([LOCAL], 4, 1 << 30, 1000, ["none"], {"/data.tfrfast": 4}, None)


@pytest.fixture(autouse=True)
def own_index_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TFRFAST_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


def test_it_names_versions_kernels_and_the_cache(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("doctor") == 0
    out = capsys.readouterr().out
    facts = dict(line.split(maxsplit=1) for line in out.split("\n\n")[0].splitlines())
    assert facts["tfrfast"] == tfr.__version__
    assert facts["numpy"] == np.__version__
    assert facts["kernels"].startswith("CRC-32C ")
    assert os.environ["TFRFAST_CACHE_DIR"] in out
    assert "TFRFAST_CACHE_DIR=" in out


def test_it_says_how_shards_would_be_read_and_builds_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shards = write_examples(tmp_path / "data")
    assert run("doctor", "--json", *shards) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["data"]["records"] is None
    assert facts["data"]["no_index"].endswith("has no index")
    assert any("`tfrfast index` does that" in each for each in facts["advice"])
    assert facts["machine"]["cache_files"] == 0
    assert run("index", *shards) == 0
    capsys.readouterr()
    assert run("doctor", str(tmp_path / "data" / "train-*")) == 0
    out = capsys.readouterr().out
    assert "shards       2," in out
    assert "records      20" in out
    assert f"indexes      2 in {tmp_path / 'data.tfrfast'}" in out
    assert "mapped" in out


def test_damaged_and_compressed_shards_are_looked_at_too(tmp_path: Path) -> None:
    with tfr.Writer(tmp_path / "a.gz", compression="GZIP") as writer:
        writer.write(b"x" * 1000)
    (tmp_path / "b").write_bytes(b"not a shard, but a text of more than twelve bytes")
    tfr.build_index(tmp_path / "b")
    found = look_at_data([tmp_path / "a.gz", tmp_path / "b"])
    assert found.records == 1
    assert "GZIP" in found.compression


def test_a_path_that_is_not_there_is_an_error_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("doctor", str(tmp_path / "absent")) == 2
    assert f"Opening '{tmp_path / 'absent'}' failed" in capsys.readouterr().err


def test_urls_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("doctor", "s3://bucket/shard") == 2
    err = capsys.readouterr().err
    assert err.startswith("tfrfast: ")
    assert err.count("\n") == 1


def test_nothing_is_slow_where_nothing_is() -> None:
    assert advice_on(FINE, INDEXED) == []
    assert advice_on(FINE, None) == []


@pytest.mark.parametrize(
    ("machine", "data", "says"),
    [
        ({"crc32c_kernel": "portable"}, {}, "no instruction for CRC-32C"),
        ({"usable_processors": 2}, {}, "may use 2 of 4 processors"),
        ({"cache_folder": "", "cache_is_used": False}, {}, "no home folder"),
        ({"cache_is_used": False}, {}, "others may write to it"),
        ({"cache_bytes": 1 << 32}, {}, "old indexes are removed"),
        ({"load": 9.2}, {}, "The machine is busy: 9.2 programs want its 4 processors"),
        ({"memory_bytes": 1 << 29}, {}, "each epoch reads from the disk"),
        ({}, {"compression": ["GZIP", "none"]}, "about 1 MiB is inflated"),
        (
            {"inflates_with": "zlib 1.3"},
            {"compression": ["GZIP"]},
            "zlib 1.3 inflates. ISA-L takes about half the time",
        ),
        ({"inflates_with": None}, {"compression": ["ZLIB"]}, "compressed shards cannot be read"),
        ({}, {"shards": 5000}, "merges them"),
        ({}, {"no_index": "'x' has no index"}, "has to scan 1.0 GiB"),
        (
            {"cache_is_used": False},
            {"no_index": "'x' has no index"},
            "every process scans again",
        ),
        (
            {},
            {"places": [LOCAL._replace(filesystem="nfs4", mounted_at="/mnt", is_mapped=False)]},
            "/mnt is of the kind nfs4",
        ),
    ],
)
def test_each_thing_that_is_slow_has_its_advice(
    machine: dict[str, object], data: dict[str, object], says: str
) -> None:
    found = advice_on(
        MachineFacts(**{**FINE._asdict(), **machine}), DataFacts(**{**INDEXED._asdict(), **data})
    )
    assert any(says in each for each in found), found


def test_the_cache_must_be_the_users_alone(own_index_cache: Path) -> None:
    folder = own_index_cache / "index"
    assert look_at_machine().cache_is_used
    folder.mkdir(mode=0o700)
    assert look_at_machine().cache_is_used
    folder.chmod(0o777)
    assert not look_at_machine().cache_is_used
    folder.rmdir()
    folder.write_text("")
    assert not look_at_machine().cache_is_used


MOUNTS = """\
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 22 0:40 / /mnt/a\\040b rw shared:1 master:2 - nfs4 server:/x rw
31 22 0:41 / /mnt rw - tmpfs none rw
32 31 0:42 / /mnt rw - fuse.gcsfuse bucket rw
garbage
"""


def test_the_longest_mount_counts_and_the_last_one_at_a_place() -> None:
    mounts = Mounts(MOUNTS)
    assert mounts.of("/mnt/a b/shard") == Filesystem("nfs4", "/mnt/a b")
    assert mounts.of("/mnt/a/b") == Filesystem("fuse.gcsfuse", "/mnt")
    assert mounts.of("/mntx") == Filesystem("ext4", "/")
    assert Mounts("").of("/mnt") == Filesystem("unknown", "/")
