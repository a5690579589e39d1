"""Shards are written to a folder of this machine, and uploaded whole when the writer is closed."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from buckets import keys, unfinished
from patience import PATIENCE_S
from tfrfast.storage.remote import uploads

pytest.importorskip("obstore", reason="needs obstore")

ROOT = "s3://somebucket/sets/one"
PART = 5 << 20  # the smallest part that S3 takes
RECORD = 1 << 20


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(uploads, "_PART_BYTES", PART)
    monkeypatch.setattr(uploads, "_PARTS_AT_ONCE", 2)
    monkeypatch.setattr(uploads, "_PATIENCE_S", PATIENCE_S)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp"


@pytest.fixture
def storage(moto: str, s3_keys: dict[str, str]) -> dict[str, Any]:
    # moto fails to end an upload while a part of it comes.
    return {"endpoint": moto, "retries": 3, **s3_keys}


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds() and time.monotonic() < until:
        time.sleep(0.01)
    assert holds()


def records_of(count: int) -> list[bytes]:
    return [bytes([number % 256]) * RECORD for number in range(count)]


def test_small_and_large_shards_make_one_set(bucket: Any, storage: dict[str, Any]) -> None:
    records = [b"small", *records_of(6), b"small, too"]
    with tfr.ShardedWriter(f"{ROOT}/x", num_shards=7, storage=storage) as writer:
        for record in [b"x" * (6 * RECORD), *records]:
            writer.write(record)
    read = tfr.Reader(writer.paths, storage=storage, index="require")
    assert sorted(read) == sorted([b"x" * (6 * RECORD), *records])
    with tfr.ShardedWriter(f"{ROOT}/empty", num_shards=2, storage=storage) as writer:
        pass
    assert len(tfr.Reader(writer.paths, storage=storage, index="require")) == 0


def test_nothing_is_left_of_what_is_given_up(
    bucket: Any, storage: dict[str, Any], folder: Path
) -> None:
    def fail() -> None:
        with tfr.ShardedWriter(f"{ROOT}/x", num_shards=2, storage=storage) as writer:
            writer.write_batch(records_of(22))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert unfinished(bucket) == 0
    assert keys(bucket) == []
    assert not list(folder.iterdir())


def test_a_part_that_fails_leaves_the_shards_here(
    bucket: Any, storage: dict[str, Any], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    from moto.s3.models import S3Backend

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("the disk of this storage is full")

    monkeypatch.setattr(S3Backend, "upload_part", fail)

    writer = tfr.ShardedWriter(f"{ROOT}/x", num_shards=2, storage=storage)
    writer.write_batch(records_of(20))
    with pytest.raises(
        OSError, match=r"Writing 's3://.*x-0000.*Nothing appeared.*complete in '"
    ) as at:
        writer.close()
    assert keys(bucket) == []
    assert unfinished(bucket) == 0
    kept = Path(str(at.value).partition("complete in '")[2].partition("'")[0])
    assert list(tfr.Reader(kept / "x-00000-of-00002")) == records_of(20)[::2]


def test_an_object_that_cannot_be_completed_is_named(
    bucket: Any, storage: dict[str, Any], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    from moto.s3.models import S3Backend

    complete = S3Backend.complete_multipart_upload

    def fail(backend: Any, name: str, number: str, *rest: Any, **named: Any) -> Any:
        if backend.get_bucket(name).multiparts[number].key_name.endswith("00001-of-00003"):
            raise OSError("this storage is full")
        return complete(backend, name, number, *rest, **named)

    monkeypatch.setattr(S3Backend, "complete_multipart_upload", fail)
    writer = tfr.ShardedWriter(f"{ROOT}/x", num_shards=3, storage=storage)
    writer.write_batch(records_of(18))
    with pytest.raises(OSError, match=r"x-00001-of-00003.*Nothing appeared under that name"):
        writer.close()
    assert "sets/one/x-00001-of-00003" not in keys(bucket)
    assert unfinished(bucket) == 0


def test_an_index_that_cannot_be_written_is_another_matter(
    bucket: Any, storage: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space")

    monkeypatch.setattr("tfrfast.storage.remote.output.publish_indexes", fail)
    writer = tfr.Writer(f"{ROOT}/x", storage=storage)
    writer.write_batch(records_of(6))
    with pytest.raises(OSError, match="No space. All shards are complete in"):
        writer.close()
    assert list(tfr.Reader(f"{ROOT}/x", storage=storage)) == records_of(6)


def test_what_appeared_meanwhile_is_not_replaced(bucket: Any, storage: dict[str, Any]) -> None:
    writer = tfr.Writer(f"{ROOT}/x", overwrite=False, storage=storage)
    writer.write_batch(records_of(6))
    bucket.put_object(Key="sets/one/x", Body=b"another one's")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        writer.close()
    assert bucket.Object("sets/one/x").get()["Body"].read() == b"another one's"
    wait_until(lambda: unfinished(bucket) == 0)


class FullDisk:
    """A writer's core, when the disk is full."""

    def __init__(self, core: Any) -> None:
        self._core = core

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)

    def write_batch(self, _: Any) -> None:
        raise OSError(errno.ENOSPC, "Writing '/tmp/x' failed: No space left on device.", "/tmp/x")


@pytest.mark.parametrize("size", [{"num_shards": 2}, {"max_bytes": 1 << 30}], ids=str)
def test_a_full_disk_is_an_error_that_says_what_to_do(
    bucket: Any, storage: dict[str, Any], size: dict[str, int]
) -> None:
    advice = "space for all shards, .* Let TMPDIR name"
    writer = tfr.ShardedWriter(f"{ROOT}/x", storage=storage, **size)  # type: ignore[arg-type]
    writer._core = FullDisk(writer._core)  # type: ignore[assignment]
    with pytest.raises(OSError, match=rf"No space left on device\. .*{advice}") as caught:
        writer.write_batch(records_of(1))
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/tmp/x")
    writer.abort()


@pytest.fixture
def interrupted() -> threading.Event:
    """Set when Ctrl-C has arrived."""
    return threading.Event()


@pytest.fixture
def last_parts(
    monkeypatch: pytest.MonkeyPatch, interrupted: threading.Event
) -> Iterator[threading.Event]:
    """Sends Ctrl-C when the storage gets the last part of a shard. The event lets the part in."""
    from moto.s3.models import S3Backend

    go_on = threading.Event()
    sent: list[str] = []
    upload_part = S3Backend.upload_part

    def interrupt(backend: Any, name: str, upload: str, part: int, *rest: Any) -> Any:
        if part == 2:
            if not sent:
                sent.append(upload)
                os.kill(os.getpid(), signal.SIGINT)
            go_on.wait(PATIENCE_S)
        return upload_part(backend, name, upload, part, *rest)

    def arrive(*_: object) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(S3Backend, "upload_part", interrupt)
    monkeypatch.setattr(uploads, "_OBJECTS_AT_ONCE", 1)
    before = signal.signal(signal.SIGINT, arrive)
    yield go_on
    go_on.set()
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_leaves_whole_objects_and_no_parts(
    bucket: Any,
    storage: dict[str, Any],
    last_parts: threading.Event,
    interrupted: threading.Event,
) -> None:
    def let_in() -> None:
        interrupted.wait(PATIENCE_S)
        time.sleep(0.5)
        last_parts.set()

    threading.Thread(target=let_in).start()
    writer = tfr.ShardedWriter(f"{ROOT}/x", num_shards=3, storage=storage)
    writer.write_batch(records_of(18))
    with pytest.raises(KeyboardInterrupt, match="interrupted. All shards are complete in"):
        writer.close()
    wait_until(lambda: unfinished(bucket) == 0)
    assert keys(bucket) in ([], ["sets/one/x-00000-of-00003"])


def test_ctrl_c_is_not_held_up_by_a_storage_that_does_not_answer(
    bucket: Any,
    storage: dict[str, Any],
    last_parts: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(uploads, "_PATIENCE_S", 0.1)
    writer = tfr.ShardedWriter(f"{ROOT}/x", num_shards=2, storage=storage)
    writer.write_batch(records_of(12))
    with pytest.raises(KeyboardInterrupt, match="interrupted. All shards are complete in"):
        writer.close()
    last_parts.set()
    time.sleep(0.5)
    # A shard whose last part was on its way may appear, whole, and no other.
    assert keys(bucket) in ([], ["sets/one/x-00000-of-00002"])


def test_a_small_object_that_is_there_has_appeared_though_the_answer_was_lost(
    bucket: Any, storage: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from moto.s3.models import S3Backend

    put = S3Backend.put_object

    def lose(backend: Any, *rest: Any, **named: Any) -> Any:
        put(backend, *rest, **named)
        raise OSError("the line is cut")

    tfr.Writer(f"{ROOT}/x", storage=storage, index=False).close()  # an object of another version
    monkeypatch.setattr(S3Backend, "put_object", lose)
    with tfr.Writer(f"{ROOT}/x", storage=storage, index=False, overwrite=True) as writer:
        writer.write(b"a record")
    monkeypatch.undo()
    assert list(tfr.Reader(f"{ROOT}/x", storage=storage)) == [b"a record"]


@pytest.mark.parametrize("size", [{"num_shards": 2}, {"max_bytes": 6 * RECORD}], ids=str)
def test_an_object_that_is_there_has_appeared_though_the_answer_was_lost(
    bucket: Any, storage: dict[str, Any], monkeypatch: pytest.MonkeyPatch, size: dict[str, int]
) -> None:
    from moto.s3.models import S3Backend

    complete = S3Backend.complete_multipart_upload

    def lose(backend: Any, *rest: Any, **named: Any) -> Any:
        complete(backend, *rest, **named)
        raise OSError("the line is cut")

    monkeypatch.setattr(S3Backend, "complete_multipart_upload", lose)
    with tfr.ShardedWriter(f"{ROOT}/x", storage=storage, **size) as writer:  # type: ignore[arg-type]
        writer.write_batch(records_of(12))
    read = tfr.Reader(f"{ROOT}/x-*", storage=storage, index="require")
    assert sorted(read) == sorted(records_of(12))


def test_sigterm_leaves_nothing(bucket: Any, storage: dict[str, Any], folder: Path) -> None:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

    def write() -> None:
        with tfr.Writer(f"{ROOT}/x", storage=storage) as writer:
            writer.write_batch(records_of(12))
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(PATIENCE_S)

    with pytest.raises(SystemExit) as ended:
        write()
    assert ended.value.code == 128 + signal.SIGTERM
    assert unfinished(bucket) == 0
    assert keys(bucket) == []
    assert not list(folder.iterdir())
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_nobody_claims_to_know_what_no_look_has_told() -> None:
    old, new, unknown = (7, "a"), (7, "b"), uploads._UNKNOWN
    told = {
        (old, new): True,
        ((), new): True,
        (old, old): False,
        (old, ()): False,
        (unknown, (8, "b")): False,
        (unknown, new): None,
        (old, unknown): None,
    }
    assert {given: uploads._has_come(*given, 7) for given in told} == told
