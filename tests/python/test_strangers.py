"""Files of a stranger on the same machine, beside data or in a writer's way."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tfrfast as tfr
from other_users import STRANGER, as_user, needs_root, open_folder
from tfrfast import _native

COUNT = 1000


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


def write_data(folder: Path) -> str:
    path = folder / "data" / "train"
    path.parent.mkdir()
    with tfr.Writer(path) as writer:
        writer.write_batch([tfr.encode_example({"id": number}) for number in range(COUNT)])
    return str(path)


@pytest.fixture
def data(folder: Path) -> str:
    return write_data(folder)


def forged(path: str) -> bytes:
    """Returns an intact key file with half of the keys, and with wrong record numbers."""
    content = Path(path).read_bytes()
    hashes = np.frombuffer(content, "<u8", COUNT, 88)[::2].tobytes()
    numbers = np.frombuffer(content, "<u2", COUNT, 88 + 8 * COUNT)[::2].tobytes()
    header = bytearray(content[:88])
    struct.pack_into("<QQ", header, 24, COUNT // 2, COUNT // 2)
    struct.pack_into("<II", header, 64, _native.crc32c(hashes), _native.crc32c(numbers))
    struct.pack_into("<I", header, 76, _native.crc32c(bytes(header[:76] + header[80:])))
    return bytes(header) + hashes + numbers


def put(path: str, content: bytes, owner: int = -1, mode: int = 0o644) -> None:
    Path(path).unlink(missing_ok=True)
    Path(path).write_bytes(content)
    os.chmod(path, mode)
    os.chown(path, owner, owner)


@needs_root
def test_a_strangers_key_file_is_not_used(data: str) -> None:
    path = tfr.build_keys(data, "id")
    good, half = Path(path).read_bytes(), forged(path)
    put(path, half)
    assert (
        tfr.Reader(data).by_key("id").get(1) is None
        or len(tfr.Reader(data).by_key("id")) == COUNT // 2
    )
    put(path, half, STRANGER)
    with pytest.raises(tfr.StaleIndexError, match=f"belongs to user {STRANGER}.*folder="):
        tfr.Reader(data).by_key("id")
    put(path, half, mode=0o666)
    with pytest.raises(
        tfr.StaleIndexError, match="users who may not write to .* may write to it.*chmod go-w"
    ):
        tfr.Reader(data).by_key("id")
    put(path, good, STRANGER)
    assert as_user(STRANGER, lambda: len(tfr.Reader(data).by_key("id"))) == COUNT


def test_key_files_are_made_for_their_owner_alone(data: str) -> None:
    before = os.umask(0)
    try:
        path = tfr.build_keys(data, "id")
    finally:
        os.umask(before)
    assert os.stat(path).st_mode & 0o022 == 0
    assert os.stat(os.path.dirname(path) + "/index").st_mode & 0o022 == 0


def test_a_key_file_that_is_cut_or_changed_while_it_is_open(data: str) -> None:
    path = tfr.build_keys(data, "id")
    records = tfr.Reader(data).by_key("id")
    with open(path, "r+b") as file:  # numbers of records that do not exist
        file.seek(88 + 8 * COUNT)
        file.write(b"\xff" * (2 * COUNT))
    for length in (os.stat(path).st_size, 0):
        os.truncate(path, length)
        assert records.find([5, COUNT]).tolist() == [5, -1]
        assert records[5] == tfr.encode_example({"id": 5})
        assert len(records.join(records)[0]) == COUNT
        with pytest.raises(tfr.CorruptRecordError, match="not an intact key file"):
            tfr.Reader(data).by_key("id")


def test_a_key_file_with_numbers_of_no_records_is_refused(data: str) -> None:
    path = tfr.build_keys(data, "id")
    content = bytearray(Path(path).read_bytes())
    content[-2:] = COUNT.to_bytes(2, "little")
    struct.pack_into("<I", content, 68, _native.crc32c(content[88 + 8 * COUNT :]))
    struct.pack_into("<I", content, 76, _native.crc32c(content[:76] + content[80:88]))
    put(path, bytes(content))
    with pytest.raises(tfr.CorruptRecordError, match="number of a record that does not exist"):
        tfr.Reader(data).by_key("id")


def test_of_a_file_that_is_no_key_file_no_more_than_the_beginning_is_read(data: str) -> None:
    path = tfr.build_keys(data, "id")
    os.truncate(path, 1 << 42)  # more than the memory, and without blocks on the disk
    with pytest.raises(tfr.CorruptRecordError, match="it has 4398046511104 bytes instead of"):
        tfr.Reader(data).by_key("id")
    assert len(tfr.delete(data, records=[0]).shards) == 1


def test_a_pipe_in_place_of_a_file_of_ours_keeps_nobody_waiting(data: str) -> None:
    path = tfr.build_keys(data, "id")
    os.unlink(path)
    os.mkfifo(path)
    with pytest.raises(tfr.StaleIndexError, match="not a regular file"):
        tfr.Reader(data).by_key("id")
    index = os.path.dirname(path) + "/index"
    os.unlink(index)
    os.mkfifo(index)
    with pytest.raises(tfr.StaleIndexError, match="not a regular file"):
        tfr.Reader(data, index="require")
    assert len(tfr.Reader(data)) == COUNT


@pytest.mark.parametrize("length", [2**32 - 1, 2**31, 100, 3])
def test_a_name_that_is_too_long_or_no_text_is_damage(data: str, length: int) -> None:
    path = tfr.build_keys(data, "id")
    content = bytearray(Path(path).read_bytes())
    struct.pack_into("<I", content, 60, length)
    content[80:83] = b"\xff\xfe\xfd"
    padded = bytes(content[80 : 80 + (length + 7) // 8 * 8])
    struct.pack_into("<I", content, 76, _native.crc32c(bytes(content[:76]) + padded))
    put(path, bytes(content))
    with pytest.raises(tfr.CorruptRecordError, match="not an intact key file"):
        tfr.Reader(data).by_key("id")


@needs_root
def test_a_strangers_link_is_no_folder_of_indexes(folder: Path) -> None:
    project = folder / "project"
    project.mkdir()
    (project / "index").write_bytes(b"DIRC of somebody")
    link = folder / "data.tfrfast"
    as_user(STRANGER, lambda: os.symlink(project, link))
    with pytest.raises(OSError, match=f"it is a link that belongs to user {STRANGER}"):
        write_data(folder)
    path = str(folder / "data" / "train")
    with tfr.Writer(path, index=False) as writer:
        writer.write_example({"id": 1})
    with (
        pytest.warns(RuntimeWarning, match="is ignored: it is a link"),
        pytest.raises(OSError, match="belongs to user"),
    ):
        tfr.build_index(path)
    for refused in (
        lambda: tfr.Writer(path, overwrite=True),
        lambda: tfr.build_keys(path, "id"),
    ):
        with pytest.raises(OSError, match="belongs to user"):
            refused()
    assert len(tfr.Reader(path)) == 1
    assert (project / "index").read_bytes() == b"DIRC of somebody"
    assert os.listdir(project) == ["index"]
    os.lchown(link, 0, 0)  # a link of this user is used
    (project / "index").unlink()
    tfr.build_index(path)
    assert os.listdir(project) == ["index"]


def test_what_is_not_ours_is_never_replaced(folder: Path) -> None:
    path = write_data(folder)
    foreign = folder / "data.tfrfast" / "index"
    foreign.write_bytes(b"DIRC of somebody")
    with pytest.raises(FileExistsError, match="does not begin like a file of tfrfast"):
        tfr.Writer(path, overwrite=True)
    for build in (lambda: tfr.build_index(path, force=True), lambda: tfr.build_index(path)):
        with pytest.raises(FileExistsError, match="does not begin like a file of tfrfast"):
            build()
    assert foreign.read_bytes() == b"DIRC of somebody"
    keys = Path(tfr.build_keys(path, "id"))
    keys.write_bytes(b"my notes about keys")
    with pytest.raises(FileExistsError, match="does not begin like a file of tfrfast"):
        tfr.build_keys(path, "id")
    assert keys.read_bytes() == b"my notes about keys"
    foreign.write_bytes(b"")  # the remains of a power cut
    tfr.build_index(path, force=True)
    assert foreign.read_bytes()[:4] == b"TFRF"


@needs_root
def test_a_planted_link_leads_no_writer_elsewhere(folder: Path) -> None:
    shared = folder / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    victim = folder / "mine"
    victim.write_bytes(b"mine")
    link = shared / "w.tfrecord"
    as_user(STRANGER, lambda: os.symlink(victim, link))
    with pytest.raises(OSError, match=f"link that belongs to user {STRANGER}|symbolic links"):
        tfr.Writer(link, overwrite=True)
    assert victim.read_bytes() == b"mine"
    shared.chmod(0o755)
    with tfr.Writer(link, overwrite=True) as output:
        output.write(b"x")  # no other user may write here, so the link is this user's
    assert victim.read_bytes() != b"mine"


def hide_records(data: str, first: int, last: int) -> None:
    """Makes the index of one shard say that some records were lost to damage."""
    with tfr.Reader(data) as reader:
        lengths = [len(record) + 16 for record in reader]
    begin, end = sum(lengths[:first]), sum(lengths[:last])
    good, status = Path(data).read_bytes(), os.stat(data)
    index = Path(data).parent.parent / "data.tfrfast" / "index"
    entry = index.read_bytes()[64 : 64 + 128]
    with open(data, "r+b") as file:
        file.seek(begin)
        file.write(bytes(end - begin))
    tfr.build_index(data, force=True)
    with open(data, "r+b") as file:
        file.write(good)
    os.utime(data, ns=(status.st_atime_ns, status.st_mtime_ns))
    content = bytearray(index.read_bytes())
    content[64 : 64 + 40] = entry[:40]  # the state of the shard
    size = struct.unpack_from("<Q", content, 32)[0]
    struct.pack_into("<I", content, 12, _native.crc32c(bytes(content[64 : 64 + size])))
    struct.pack_into("<I", content, 60, _native.crc32c(bytes(content[:60])))
    index.write_bytes(content)


def test_a_claim_of_damage_is_looked_at_in_the_shard(data: str) -> None:
    hide_records(data, 100, 200)
    assert len(tfr.Reader(data, on_corruption="skip")) == COUNT
    assert len(tfr.Reader(data, index="memory")) == COUNT


def test_an_index_that_others_may_write_is_believed_as_the_shard_is(data: str) -> None:
    index = Path(data).parent.parent / "data.tfrfast" / "index"
    index.chmod(0o666)
    with (
        pytest.warns(RuntimeWarning, match="users who may not write to"),
        pytest.raises(tfr.StaleIndexError, match="chmod go-w"),
    ):
        tfr.Reader(data, index="require")
    assert len(tfr.Reader(data)) == COUNT
    os.chmod(data, 0o666)
    tfr.build_index(data)
    index.chmod(0o666)
    assert len(tfr.Reader(data, index="require")) == COUNT
