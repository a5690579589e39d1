"""Records by key: lookups of every kind, duplicates, absence, damage, stale and broken files."""

from __future__ import annotations

import functools
import json
import os
import re
import struct
import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tfrfast as tfr
import wire_examples as wire
from children import in_threads
from file_limits import few_bytes_a_file
from record_files import flip_payload_byte, write_rows, write_shard
from reference_order import siphash24_of
from tfrfast import _native
from tfrfast.cli import main
from tfrfast.jobs import building_keys as keys_module
from tfrfast.keys import entries as entries_module
from tfrfast.keys.key_file import KeyFile, KeyHeader, write_keys
from tfrfast.keys.keyed import Keyed

COUNT = 3000


def key_of(number: int) -> bytes:
    """Every tenth key repeats the key of the previous record."""
    return b"cat_%d" % (number - (number % 10 == 9))


def example(number: int) -> bytes:
    features: dict[str, Any] = {"other": [1.0] * (number % 4), "n": number * 7 - 5000}
    if number % 100 != 50:
        features["image/id"] = key_of(number)
    return tfr.encode_example(features)


@pytest.fixture
def data(tmp_path: Path) -> list[str]:
    paths = []
    for shard in range(3):
        path = tmp_path / "data" / f"train-{shard}"
        path.parent.mkdir(exist_ok=True)
        with tfr.Writer(path) as writer:
            writer.write_batch([example(n) for n in range(shard * 1000, shard * 1000 + 1000)])
        paths.append(str(path))
    return paths


@pytest.fixture
def records(data: list[str]) -> Keyed:
    tfr.build_keys(data, "image/id")
    return tfr.Reader(data).by_key("image/id")


def test_single_keys_give_their_record(records: Keyed) -> None:
    for number in range(0, COUNT, 7):
        if number % 100 == 50:
            assert key_of(number) not in records
            continue
        first = number - (number % 10 == 9)
        assert records[key_of(number)] == example(first)
    assert records[key_of(17).decode()] == example(17)
    assert records[np.array(key_of(17).decode())] == example(17)
    assert records.get(b"nothing") is None
    assert records.get(b"nothing", 5) == 5
    assert records.get(b"cat_3") == example(3)
    assert b"cat_3" in records
    assert "cat_3" in records
    assert b"" not in records
    with pytest.raises(KeyError, match="nothing"):
        records[b"nothing"]


def test_arrays_of_keys_give_records_in_that_order(records: Keyed) -> None:
    random = np.random.default_rng(0)
    numbers = [int(n) for n in random.integers(0, COUNT, 9000) if n % 100 != 50]
    expected = [n - (n % 10 == 9) for n in numbers]
    keys = [key_of(n) for n in numbers]
    batch = records[keys]
    assert batch.indices.tolist() == expected
    assert batch.tolist() == [example(n) for n in expected]
    strings = tfr.parse_example(batch, {"image/id": tfr.FixedLen((), "bytes")})["image/id"]
    for form in (strings, np.array(keys, dtype=object), tuple(key.decode() for key in keys)):
        assert records[form].indices.tolist() == expected
        assert records.find(form).tolist() == expected
    assert records.find([b"cat_1", b"x", b""]).tolist() == [1, -1, -1]
    assert len(records[[]]) == 0
    with pytest.raises(KeyError, match="b'x'"):
        records[[b"cat_1", b"x"]]


def test_repeated_keys_are_known(records: Keyed) -> None:
    absent = COUNT // 100
    assert records.duplicates == COUNT // 10
    assert len(records) == COUNT - COUNT // 10 - absent
    both = records.all(b"cat_1238")
    assert both.indices.tolist() == [1238, 1239]
    assert both.tolist() == [example(1238), example(1239)]
    assert records.all(b"cat_3").indices.tolist() == [3]
    assert len(records.all(b"nothing")) == 0
    assert records.feature == "image/id"
    assert os.path.dirname(records.path).endswith("data.tfrfast")


def test_integers_are_keys(data: list[str]) -> None:
    tfr.build_keys(data, "n", threads=1)
    records = tfr.Reader(data).by_key("n")
    assert len(records) == COUNT
    assert records[-5000] == records[np.int32(-5000)] == example(0)
    assert records[np.array([2000, -4993], np.int16)].indices.tolist() == [1000, 1]
    assert records[[2000, -4993]].indices.tolist() == [1000, 1]
    assert records.find(range(-5000, -4980, 7)).tolist() == [0, 1, 2]
    assert 1 not in records
    assert records.get(2**70 - 2**70 + 3, b"none") == b"none"
    for wrong in (b"x", "x", 1.5, True, None):
        with pytest.raises(TypeError, match="A key of 'n' is an integer"):
            records.get(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("beyond", [2**63, -(2**63) - 1, 2**64 - 5000, 2**70])
def test_integers_beyond_int64_are_no_ones_keys(data: list[str], beyond: int) -> None:
    tfr.build_keys(data, "n")
    records = tfr.Reader(data).by_key("n")  # record 0 has -5000
    with pytest.raises(KeyError, match=str(beyond)):
        records[beyond]
    assert records.get(beyond, b"none") == b"none"
    assert beyond not in records
    assert len(records.all(beyond)) == 0
    assert records.find([beyond, -4993]).tolist() == [-1, 1]
    with pytest.raises(KeyError, match="int64"):
        records[[-4993, beyond]]
    if 0 <= beyond < 2**64:
        keys = np.array([beyond, 2000], np.uint64)
        assert records.find(keys).tolist() == [-1, 1000]
        with pytest.raises(KeyError, match="int64"):
            records[keys]


def test_keys_of_another_type_are_refused(records: Keyed) -> None:
    for wrong in (5, None, 1.5, bytearray(b"x")):
        with pytest.raises(TypeError, match="is bytes or str"):
            records.get(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="is bytes or str"):
        records[[b"cat_1", 5]]  # type: ignore[list-item]
    one: Any
    for one in ("cat_1", b"cat_1", np.array("cat_1")):
        with pytest.raises(TypeError, match="Put a single key into a list"):
            records.find(one)


def test_two_sets_are_joined_by_key(data: list[str], tmp_path: Path, records: Keyed) -> None:
    write_rows(
        tmp_path / "captions",
        ({"id": b"cat_%d" % number, "text": b"a cat"} for number in range(5000, 900, -3)),
    )
    captions = tfr.Reader(str(tmp_path / "captions"))
    tfr.build_keys(captions, "id")
    here, there = records.join(captions.by_key("id"))
    ids = {b"cat_%d" % number: row for row, number in enumerate(range(5000, 900, -3))}
    expected = {
        (n, ids[key_of(n)])
        for n in range(COUNT)
        if key_of(n) in ids and n % 100 != 50 and n % 10 != 9
    }
    assert set(zip(here.tolist(), there.tolist(), strict=True)) == expected
    assert len(here) == len(expected)
    back = captions.by_key("id").join(records)
    assert [each.tolist() for each in back] == [there.tolist(), here.tolist()]
    tfr.build_keys(data, "n")
    with pytest.raises(TypeError, match="never equal"):
        records.join(tfr.Reader(data).by_key("n"))


def test_entries_that_do_not_fit_into_memory_give_the_same_file(
    data: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Path(tfr.build_keys(data, "image/id", folder=tmp_path / "a")).read_bytes()
    spilled = []
    spill = entries_module.Entries._spill
    monkeypatch.setattr(
        entries_module.Entries, "_spill", lambda self: (spilled.append(1), spill(self))
    )
    monkeypatch.setattr(keys_module, "part_bytes", lambda total, workers: total // 10)
    reader = tfr.Reader(data)
    cut = Path(tfr.build_keys(reader, "image/id", folder=tmp_path / "b", max_memory=20_000))
    assert len(spilled) > 3
    assert cut.read_bytes() == whole
    assert [path.name for path in (tmp_path / "b").iterdir()] == [cut.name]
    assert reader.by_key("image/id", folder=tmp_path / "b")[b"cat_5"] == example(5)
    with pytest.raises(FileNotFoundError, match="build_keys"):
        reader.by_key("image/id")


@pytest.mark.parametrize("max_memory", [20_000, 1 << 20])
def test_a_full_disk_is_said_with_the_file(
    data: list[str], tmp_path: Path, max_memory: int
) -> None:
    reader = tfr.Reader(data)
    with few_bytes_a_file(200), pytest.raises(OSError, match=r"File too large: .*\.keys'"):
        tfr.build_keys(reader, "n", folder=tmp_path / "keys", max_memory=max_memory)
    assert not (tmp_path / "keys").exists()


def test_the_file_is_small_and_as_specified(data: list[str]) -> None:
    content = Path(tfr.build_keys(data, "n")).read_bytes()
    assert len(content) == 80 + 8 + COUNT * (8 + 2)
    magic, version, kind, records, entries, distinct = struct.unpack_from("<8sIIQQQ", content)
    assert (magic, version, kind) == (b"tfr.keys", 1, 2)
    assert (records, entries, distinct) == (COUNT, COUNT, COUNT)
    assert struct.unpack_from("<Q", content, 40) == (tfr.Reader(data)._fingerprint,)
    assert content[80:88] == b"n" + bytes(7)
    hashes = np.frombuffer(content, "<u8", COUNT, 88)
    assert (hashes[1:] > hashes[:-1]).all()
    assert hashes[0] == sorted(_native.hash_ints(np.arange(COUNT) * 7 - 5000))[0]


def test_hashes_are_siphash_2_4() -> None:
    for text in (b"", b"a", b"12345678", b"cat_17 and more"):
        data = np.frombuffer(text, np.uint8)
        hashed = _native.hash_strings(data, np.array([0, len(text)]))[0]
        assert hashed == siphash24_of((0, 0), text)
    negative = (-2).to_bytes(8, "little", signed=True)
    assert _native.hash_ints(np.array([-2]))[0] == siphash24_of((0, 0), negative)


def table_of(
    path: Path, reader: tfr.Reader, hashes: npt.NDArray[np.uint64], numbers: npt.NDArray[np.uint32]
) -> KeyFile:
    """Writes a key file with these contents."""
    header = KeyHeader("image/id", "bytes", len(reader), len(hashes), len(hashes), 0, 0)
    with path.open("wb") as file:
        write_keys(file, header, [entries_module.entries_of(hashes, numbers)])
    return KeyFile(str(path), reader._core)


def test_keys_with_one_hash_are_told_apart(data: list[str], records: Keyed, tmp_path: Path) -> None:
    """A table in which every key has the same hash finds the right record, or none."""
    reader = tfr.Reader(data)
    shared = int(_native.hash_strings(np.frombuffer(b"cat_2", np.uint8), np.array([0, 5]))[0])
    numbers = np.array([0, 1, 2, 3], np.uint32)
    table = table_of(tmp_path / "4.keys", reader, np.full(4, shared, np.uint64), numbers)
    assert table.item(reader._core, b"cat_2") == example(2)
    records._file = table
    assert records[b"cat_2"] == example(2)
    assert records[[b"cat_2", b"cat_2"]].indices.tolist() == [2, 2]
    assert records.all(b"cat_2").indices.tolist() == [2]
    assert table.numbers(shared).tolist() == [0, 1, 2, 3]
    records._file = table_of(
        tmp_path / "2.keys", reader, np.full(2, shared, np.uint64), numbers[:2]
    )
    assert b"cat_2" not in records
    with pytest.raises(KeyError, match="cat_2"):
        records[[b"cat_2"]]


def test_duplicates_are_listed_with_the_first_record(
    data: list[str], records: Keyed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repeated, firsts = records.find_duplicates()
    assert repeated.tolist() == list(range(9, COUNT, 10))
    assert firsts.tolist() == list(range(8, COUNT, 10))
    assert main(["keys", *data, "--by", "image/id", "--duplicates"]) == 0
    out = capsys.readouterr().out
    assert "300 records with the key of an earlier record" in out
    assert re.search(r"b'cat_8' +9 +8\n", out)
    assert main(["keys", *data, "--by", "image/id", "--duplicates", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["duplicates"][-1] == [2999, 2998]
    # Different keys with one hash are told apart.
    shared = int(_native.hash_strings(np.frombuffer(b"cat_2", np.uint8), np.array([0, 5]))[0])
    numbers = np.array([8, 9, 17, 18, 19, 20], np.uint32)
    hashes = np.full(len(numbers), shared, np.uint64)
    records._file = table_of(tmp_path / "one.keys", tfr.Reader(data), hashes, numbers)
    assert [each.tolist() for each in records.find_duplicates()] == [[9, 19], [8, 18]]


@pytest.mark.parametrize("count", [0, 1, 2, 17, 1000])
def test_searches_agree_with_a_plain_one(count: int, data: list[str], tmp_path: Path) -> None:
    reader = tfr.Reader(data)
    random = np.random.default_rng(count)
    for spread in (2**64 - 1, 50, 2**40):
        hashes = np.sort(random.integers(0, spread, count, np.uint64, endpoint=True))
        numbers = np.arange(count, dtype=np.uint32)
        table = table_of(tmp_path / "x.keys", reader, hashes, numbers)
        wanted = np.concatenate(
            [hashes, hashes + np.uint64(1), np.array([0, 2**64 - 1], np.uint64)]
        )
        first = np.searchsorted(hashes, wanted)
        there = np.array([i < count and hashes[i] == w for i, w in zip(first, wanted, strict=True)])
        assert table.find(wanted).tolist() == np.where(there, first, -1).tolist()


def test_a_file_of_other_data_is_refused(data: list[str]) -> None:
    tfr.build_keys(data, "image/id")
    with pytest.raises(FileNotFoundError, match="There is no key file"):
        tfr.Reader(data[:2]).by_key("image/id")
    with pytest.raises(FileNotFoundError, match="There is no key file"):
        tfr.Reader(data).by_key("n")
    with tfr.Writer(data[1], overwrite=True) as writer:  # as many records of the same sizes
        writer.write_batch([example(n) for n in range(1000, 2000)])
    with pytest.raises(tfr.StaleIndexError, match="build_keys again"):
        tfr.Reader(data).by_key("image/id")
    tfr.build_keys(data, "image/id")
    assert tfr.Reader(data).by_key("image/id")[b"cat_1500"[:-2] + b"01"] == example(1501)


def test_a_file_of_shards_that_were_replaced_is_not_one_of_the_new_shards(data: list[str]) -> None:
    reader = tfr.Reader(data)
    with tfr.Writer(data[1], overwrite=True) as writer:  # as many records of the same sizes
        writer.write_batch([example(n) for n in range(1999, 999, -1)])
    tfr.build_keys(reader, "image/id")  # of the old shards
    assert reader.by_key("image/id").find([b"cat_1501"]) == [1501]
    now = tfr.Reader(data)
    assert now[1498] == example(1501)
    with pytest.raises(tfr.StaleIndexError, match="build_keys again"):
        now.by_key("image/id")


def test_a_damaged_file_is_refused_whichever_byte_it_is(data: list[str]) -> None:
    reader = tfr.Reader(data)
    path = Path(tfr.build_keys(reader, "image/id"))
    good = path.read_bytes()
    for place in [*range(0, 100, 3), 5000, len(good) // 2, len(good) - 1]:
        path.write_bytes(good[:place] + bytes([good[place] ^ 4]) + good[place + 1 :])
        with pytest.raises((tfr.CorruptRecordError, tfr.StaleIndexError)):
            reader.by_key("image/id")
    for length in (0, 20, 79, 90, len(good) - 1):
        path.write_bytes(good[:length])
        with pytest.raises(tfr.CorruptRecordError, match="not an intact key file"):
            reader.by_key("image/id")
    path.write_bytes(good)
    assert b"cat_7" in reader.by_key("image/id")


def test_features_that_are_no_keys_are_refused(data: list[str], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds float32"):
        tfr.build_keys(data, "other")
    with pytest.raises(tfr.FeatureError, match="'nothing' is required"):
        tfr.build_keys(data, "nothing")
    with tfr.Writer(tmp_path / "x") as writer:
        writer.write_example({"id": [1]})
        writer.write_example({"id": [1, 2]})
    with pytest.raises(tfr.FeatureError, match="id"):
        tfr.build_keys(str(tmp_path / "x"), "id")
    assert not list(tmp_path.glob("*.tfrfast/*.keys*"))


def test_an_empty_set_has_no_keys(tmp_path: Path) -> None:
    tfr.Writer(tmp_path / "x").close()
    reader = tfr.Reader(str(tmp_path / "x"))
    tfr.build_keys(reader, "id")
    assert len(reader.by_key("id")) == 0
    assert b"x" not in reader.by_key("id")
    assert reader.by_key("id").find([b"x"]).tolist() == [-1]


def test_an_empty_feature_replaces_no_key(tmp_path: Path) -> None:
    twice = wire.example(
        wire.entry(b"id", wire.byte_strings(b"one")), wire.entry(b"id", wire.byte_strings(b"two"))
    )
    empty_last = wire.example(
        wire.entry(b"id", wire.byte_strings(b"three")), wire.entry(b"id", b"")
    )
    path = write_shard(tmp_path / "shard", [twice, empty_last])
    tfr.build_keys(path, "id")
    keyed = tfr.Reader(path).by_key("id")
    assert keyed.find([b"one", b"two", b"three"]).tolist() == [-1, 0, 1]


def test_damage_is_an_error_or_left_out(data: list[str]) -> None:
    with tfr.Reader(data[0]) as reader:
        flip_payload_byte(data[0], list(reader), 20)
    with pytest.raises(tfr.CorruptRecordError):
        tfr.build_keys(data, "image/id")
    with pytest.warns(RuntimeWarning, match="Damage was left out: 1 place"):
        tfr.build_keys(data, "image/id", on_corruption="skip")
    records = tfr.Reader(data, on_corruption="skip").by_key("image/id")
    assert b"cat_20" not in records
    assert records[b"cat_21"] == example(21)


def test_damaged_records_are_told_apart_from_missing_ones(data: list[str]) -> None:
    tfr.build_keys(data, "n")
    before = os.stat(data[0])
    with tfr.Reader(data[0]) as reader:
        flip_payload_byte(data[0], list(reader), 20)
    os.utime(data[0], ns=(before.st_atime_ns, before.st_mtime_ns))  # as when a disk fails
    records = tfr.Reader(data, on_corruption="skip").by_key("n")
    for ask in (lambda: records[20 * 7 - 5000], lambda: records[[-5000, 20 * 7 - 5000]]):
        with pytest.raises(tfr.CorruptRecordError, match="record 20 "):
            ask()
    here, there = records.join(records)
    assert sorted(here.tolist()) == [n for n in range(COUNT) if n != 20]
    assert here.tolist() == there.tolist()


def test_joins_hold_few_large_records_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows(tmp_path / "x", ({"id": number, "pixels": bytes(1 << 20)} for number in range(40)))
    tfr.build_keys(str(tmp_path / "x"), "id")
    records = tfr.Reader(str(tmp_path / "x")).by_key("id")
    sizes: list[int] = []
    parse = type(records)._keys_of
    monkeypatch.setattr(
        type(records),
        "_keys_of",
        lambda self, batch: sizes.append(len(batch)) or parse(self, batch),
    )
    here, there = records.join(records)
    assert here.tolist() == there.tolist()
    assert sum(sizes) == len(here) == 40
    assert max(sizes) <= 16


def test_a_reader_may_be_closed_while_others_look_up(tmp_path: Path) -> None:
    with tfr.Writer(tmp_path / "x") as writer:
        writer.write_example({"id": 1, "pixels": bytes(32 << 20)})
    tfr.build_keys(str(tmp_path / "x"), "id")
    whole = next(iter(tfr.Reader(str(tmp_path / "x"))))
    for _ in range(5):
        reader = tfr.Reader(str(tmp_path / "x"))
        records = reader.by_key("id")
        started = threading.Event()
        found: list[bytes] = []

        def look(
            records: Keyed = records,
            started: threading.Event = started,
            found: list[bytes] = found,
        ) -> None:
            started.set()
            found.append(records[1])

        thread = threading.Thread(target=look)
        thread.start()
        started.wait()
        while not found and not reader.closed:
            reader.close()
        thread.join()
        assert all(each == whole for each in found)


def test_many_threads_may_look_up(records: Keyed) -> None:
    def look(first: int) -> None:
        for number in range(first, COUNT, 40):
            if number % 100 != 50 and number % 10 != 9:
                assert records[key_of(number)] == example(number)

    in_threads(functools.partial(look, first) for first in range(4))


def test_a_closed_reader_gives_no_records(data: list[str]) -> None:
    tfr.build_keys(data, "image/id")
    reader = tfr.Reader(data)
    records = reader.by_key("image/id")
    reader.close()
    with pytest.raises(ValueError, match="closed"):
        records[b"cat_1"]
