"""Links that are slow, or stall. Time limits apply only while no bytes come. Received bytes are
kept.
"""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

import tfrfast as tfr
from patience import at_least_once
from range_server import RangeServer, Seen, Trouble
from record_files import write_shard
from tfrfast.storage.remote.pace import Pace

pytest.importorskip("obstore", reason="needs obstore")


@pytest.fixture
def large(server: RangeServer, tmp_path: Path) -> str:
    """The URL of a shard of 1 MB."""
    records = [bytes([number]) * 50_000 for number in range(20)]
    server.put("set/large", Path(write_shard(tmp_path / "large", records)).read_bytes())
    return f"{server.url}/set/large"


def test_what_comes_slowly_comes(server: RangeServer, large: str) -> None:
    server.bytes_per_s = 2_000_000  # 0.5 s in all

    def check() -> None:
        reader = tfr.Reader(large, index="memory", storage={"timeout": 0.2, "retries": 0})
        assert [record[0] for record in reader] == list(range(20))

    at_least_once(check, tries=30)  # a busy machine may let nothing come for 0.2 s


def test_what_has_come_is_kept_when_the_rest_does_not(server: RangeServer, large: str) -> None:
    server.bytes_per_s = 2_000_000  # a quick answer is not handed on in pieces
    tfr.Reader(large, index="memory")

    def trouble(seen: Seen, number: int) -> Trouble | None:
        return Trouble(stalls_after=300_000) if number <= 3 else None

    def check() -> None:
        server.bytes_per_s = 20_000_000
        server.trouble = lambda *_: None
        reader = tfr.Reader(large, storage={"timeout": 0.3, "retries": 2})
        server.forget()
        server.trouble = trouble
        assert [record[0] for record in reader.read(range(20))] == list(range(20))
        begins = [seen.begin for seen in server.reads() if seen.begin is not None]
        assert begins[0] == 0
        assert all(later >= earlier + 200_000 for earlier, later in itertools.pairwise(begins[:4]))
        server.trouble = lambda *_: Trouble(stalls_after=100)
        with pytest.raises(TimeoutError, match="storage={'timeout': ...}"):
            reader.read(range(20))

    at_least_once(check, tries=30)  # a busy machine may let nothing come for 0.3 s


def test_what_is_sent_slowly_arrives(server: RangeServer) -> None:
    server.bytes_per_s = 2_000_000
    storage = {"endpoint": server.url, "region": "us-east-1", "anonymous": True}

    def check() -> None:
        with tfr.Writer(
            "s3://bucket/x",
            index=False,
            storage={**storage, "timeout": 0.2, "retries": 0},
            overwrite=True,
        ) as writer:
            writer.write(bytes(1_000_000))  # 0.5 s
        assert len(server.objects["bucket/x"].data) == 1_000_016

    at_least_once(check, tries=30)


def test_after_time_outs_fewer_and_smaller_requests_run() -> None:
    async def play() -> None:
        pace = Pace()
        begun = [await pace.begin() for _ in range(32)]
        for each in begun:  # together
            pace.timed_out(each)
            pace.end()
        assert pace.at_once == 8
        assert pace.request_bytes == 2 << 20
        begun = [await pace.begin() for _ in range(8)]
        another = asyncio.ensure_future(pace.begin())
        await asyncio.sleep(0)
        assert not another.done()
        pace.end()
        await another
        for _ in range(8):
            pace.answered(1, 1.0)
        assert pace.at_once == 9
        assert pace.request_bytes == 4 << 20
        for _ in range(9):
            pace.answered(1, 1.0)
        assert not pace.is_slow

    asyncio.run(play())
