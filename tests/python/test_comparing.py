"""Two data sets compared by key and by content, against a plain model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from cli_files import damage, run_shown
from endless_task import EndlessTask
from tfrfast.jobs.comparing import compare as compare_module
from tfrfast.jobs.running import Advance
from tfrfast.keys import entries as entries_module

Features = dict[str, Any]


def shard(path: Path, records: list[bytes], **options: Any) -> str:
    path.parent.mkdir(exist_ok=True, parents=True)
    with tfr.Writer(path, **options) as writer:
        writer.write_batch(records)
    return str(path)


def field(number: int, content: bytes) -> bytes:
    length = len(content)
    return bytes([number << 3 | 2, length & 0x7F | 0x80, length >> 7]) + content


def steps(*contents: bytes) -> bytes:
    """A SequenceExample with a feature list of these Features."""
    return field(2, field(1, field(1, b"f") + field(2, b"".join(field(1, c) for c in contents))))


def reversed_names(features: Features) -> bytes:
    """An Example whose map has another order of names than ours."""
    whole = [tfr.encode_example({name: features[name]}) for name in sorted(features, reverse=True)]
    return b"".join(whole)  # parsers join Examples that follow one another


def example(number: int, **features: Any) -> Features:
    return {"id": b"cat_%d" % number, "label": number % 5, "w": [0.5, float(number)], **features}


def encoded(examples: list[Features]) -> list[bytes]:
    return [tfr.encode_example(each) for each in examples]


@pytest.fixture
def sets(tmp_path: Path) -> tuple[str, list[str]]:
    """A, and B in another order, with other shards and compression. B lacks 7 and 8, has 100 and
    101, and has changed 3, 4 and 5.
    """
    a = [example(n) for n in range(20)]
    b = [example(n) for n in (*range(7), *range(9, 20), 100, 101)]
    b[3]["label"], b[4]["label"], b[5]["w"] = 9, 9, [1.5]
    b[4]["new"] = b"x"
    ours = shard(tmp_path / "a" / "one", encoded(a))
    theirs = encoded(b)[::-1]
    theirs[0] = reversed_names(b[-1])
    theirs[-1] = reversed_names(b[0])
    paths = [
        shard(tmp_path / "b" / "x", theirs[:12], compression="GZIP"),
        shard(tmp_path / "b" / "y", theirs[12:]),
    ]
    return ours, paths


def test_changed_records_are_told_from_new_ones(sets: tuple[str, list[str]]) -> None:
    found = tfr.diff(*sets, key="id", threads=2)
    b = tfr.Reader(sets[1])
    ids = tfr.parse_example(b.read(range(20)), {"id": tfr.FixedLen((), "bytes")})["id"].tolist()
    assert (found.num_a, found.num_b, found.same, found.rewritten) == (20, 20, 15, 1)
    assert found.only_a.tolist() == [7, 8]
    assert found.only_b.tolist() == [ids.index(b"cat_101"), ids.index(b"cat_100")]
    assert found.changed.tolist() == [[n, ids.index(b"cat_%d" % n)] for n in (3, 4, 5)]
    assert [each[:3] for each in found.features] == [("label", 2, 3), ("new", 1, 4), ("w", 1, 5)]
    assert [(each.values_a, each.values_b) for each in found.features] == [
        ([3], [9]),
        (None, [b"x"]),
        ([0.5, 5.0], [1.5]),
    ]
    assert (found.duplicates, found.without_key, found.is_same) == ((0, 0), (0, 0), False)
    text = str(found)
    assert "the same        15, 1 of them written differently" in text
    assert "changed         3 (records 3, 4, 5)" in text
    assert "label" in text
    assert "A's record 3" in text


def test_a_failed_comparison_ends_its_tasks(
    sets: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = EndlessTask()

    def failing() -> Iterator[Any]:
        endless.wait()
        yield ()

    def run(task: Any, advance: Advance) -> Any:
        if task.ours.numbers[0] == 3:
            return failing()
        return endless.run(advance)

    monkeypatch.setattr(compare_module, "_PAIRS_IN_TASK", 1)
    monkeypatch.setattr(compare_module._CompareFeatures, "run", run)
    with pytest.raises(ValueError, match="unpack") as caught:
        tfr.diff(*sets, key="id", threads=2)
    assert endless.ended.is_set(), caught.value  # whose traceback keeps the frames


@pytest.mark.parametrize("key", [None, "id"])
@pytest.mark.parametrize("seed", range(20))
def test_random_sets_agree_with_a_model(key: str | None, seed: int, tmp_path: Path) -> None:
    """Few keys and few contents, so that records repeat in every way."""
    random = np.random.default_rng(seed)

    def records(count: int) -> list[tuple[str, bytes, bytes]]:
        """For each record what pairs it, its features, and its bytes."""
        made = []
        for _ in range(count):
            features: Features = {"n": int(random.integers(3)), "z": b"z"}
            if random.random() < 0.8:
                features["id"] = int(random.integers(6))
            form = reversed_names if random.random() < 0.3 else tfr.encode_example
            content = tfr.encode_example(features)
            pairs_by = str(features.get("id")) if key and "id" in features else content.hex()
            made.append((pairs_by, content, form(features)))
        return made

    a, b = records(int(random.integers(1, 40))), records(int(random.integers(1, 40)))
    paths = [shard(tmp_path / name, [r for _, _, r in s]) for name, s in (("a", a), ("b", b))]
    if key and any(not any(p.isdigit() and len(p) == 1 for p, _, _ in s) for s in (a, b)):
        with pytest.raises(ValueError, match="has the feature 'id'"):
            tfr.diff(*paths, key=key)
        return
    found = tfr.diff(*paths, key=key)

    def in_common(parts: slice) -> int:
        return sum((Counter(r[parts] for r in a) & Counter(r[parts] for r in b)).values())

    exact, equal, paired = in_common(slice(3)), in_common(slice(2)), in_common(slice(1))
    assert found.same == equal
    assert found.rewritten == equal - exact
    assert len(found.changed) == paired - equal
    assert len(found.only_a) == len(a) - paired
    assert len(found.only_b) == len(b) - paired
    for left, side in ((found.only_a, a), (found.only_b, b)):
        rest = Counter(r[0] for r in side)
        shared = Counter(r[0] for r in a) & Counter(r[0] for r in b)
        assert Counter(side[n][0] for n in left) == rest - shared
    assert all(a[n][0] == b[m][0] and a[n][1] != b[m][1] for n, m in found.changed)
    if key:
        keyed = [[p for p, _, _ in s if len(p) == 1] for s in (a, b)]
        assert found.duplicates == tuple(len(k) - len(set(k)) for k in keyed)
        assert found.without_key == tuple(
            len(s) - len(k) for s, k in zip((a, b), keyed, strict=True)
        )


EQUAL = {
    "order of names": (reversed_names({"a": 1, "b": [1.5, 2.5]}), {"a": 1, "b": [1.5, 2.5]}),
    "unpacked floats": (
        field(
            1, field(1, field(1, b"b") + field(2, field(2, b"\x0d\0\0\xc0\x3f\x0d\0\0\x20\x40")))
        ),
        {"b": [1.5, 2.5]},
    ),
    "unpacked integers": (
        field(1, field(1, field(1, b"b") + field(2, field(3, b"\x08\x01\x08\x02")))),
        {"b": [1, 2]},
    ),
}
UNEQUAL: dict[str, tuple[Features | bytes, Features | bytes]] = {
    "a value": ({"b": [1, 2]}, {"b": [2, 1]}),
    "a type": ({"b": [0]}, {"b": [0.0]}),
    "a name": ({"b": 1}, {"c": 1}),
    "a sign": ({"b": 0.0}, {"b": -0.0}),
    "borders of strings": ({"b": [b"ab", b"c"]}, {"b": [b"a", b"bc"]}),
    "swapped features": ({"b": 1, "c": 2}, {"b": 2, "c": 1}),
    "an empty list": ({"b": 1, "c": np.array([], np.int64)}, {"b": 1}),
    "a zero more": ({"b": [0]}, {"b": [0, 0]}),
    "steps that together hold the same": (
        steps(field(3, field(1, b"\x05\x06\x02")), b""),
        steps(field(3, field(1, b"\x05\x06")), field(3, b"")),
    ),
}
#: Records that only look alike: their bytes decide.
BYTES_DECIDE = {
    "an unknown field": tfr.encode_example({"b": 1}) + b"\x38\x01",
    "a name twice": tfr.encode_example({"b": 2}) + tfr.encode_example({"b": 1}),
    "a second list": field(1, field(1, field(1, b"b") + field(2, b"\x1a\x03\x0a\x01\x01\x0a\x00"))),
    "other bytes": b"\xff" + tfr.encode_example({"b": 1}),
    "a length past its end": tfr.encode_example({"b": [1.5]}).replace(b"\x0a\x04", b"\x0a\x24"),
}


@pytest.mark.parametrize("name", EQUAL)
def test_examples_that_are_written_differently_are_the_same(name: str, tmp_path: Path) -> None:
    raw, features = EQUAL[name]
    assert raw != tfr.encode_example(features)
    found = tfr.diff(shard(tmp_path / "a", [raw]), shard(tmp_path / "b", encoded([features])))
    assert (found.same, found.rewritten, found.is_same) == (1, 1, True)


@pytest.mark.parametrize("name", UNEQUAL)
def test_examples_differ_by(name: str, tmp_path: Path) -> None:
    raw = [e if isinstance(e, bytes) else tfr.encode_example(e) for e in UNEQUAL[name]]
    assert not tfr.diff(*[shard(tmp_path / str(i), [each]) for i, each in enumerate(raw)]).is_same


@pytest.mark.parametrize("name", BYTES_DECIDE)
def test_what_parsers_leave_out_makes_a_difference(name: str, tmp_path: Path) -> None:
    raw = BYTES_DECIDE[name]
    a = shard(tmp_path / "a", [raw])
    for value in (1, [1.5]):
        b = shard(tmp_path / str(value), encoded([{"b": value}]))
        assert not tfr.diff(a, b).is_same
    assert tfr.diff(a, a).rewritten == 0


def test_keys_of_different_kinds_make_no_pair(tmp_path: Path) -> None:
    """Key files hash the number and its eight bytes alike."""
    examples = [{"k": 1, "v": 2}, {"k": b"\x01" + bytes(7), "v": 2}]
    found = tfr.diff(
        *[shard(tmp_path / str(i), encoded([e])) for i, e in enumerate(examples)], key="k"
    )
    assert (found.only_a.tolist(), found.only_b.tolist(), len(found.changed)) == ([0], [0], 0)


def test_sets_larger_than_memory_and_other_processes_give_the_same(
    sets: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spilled = []
    spill = entries_module.Entries._spill
    monkeypatch.setattr(
        entries_module.Entries, "_spill", lambda self: (spilled.append(1), spill(self))
    )
    monkeypatch.setattr(compare_module, "part_bytes", lambda total, workers: total // 10)
    expected = str(tfr.diff(*sets, key="id"))
    assert not spilled
    assert str(tfr.diff(*sets, key="id", max_memory=200, work=tmp_path)) == expected
    assert len(spilled) > 2
    assert not list(tmp_path.glob("tfrfast-diff-*"))
    with ProcessPoolExecutor(2) as executor:
        assert str(tfr.diff(*sets, key="id", executor=executor)) == expected


def test_keys_that_are_no_keys_are_refused(sets: tuple[str, list[str]], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No record of A has the feature 'idd'. Did you mean 'id'"):
        tfr.diff(*sets, key="idd")
    with pytest.raises(
        tfr.FeatureError, match="Record 0 at byte 0 of '.*(one|x)' has no single key 'w'"
    ):
        tfr.diff(*sets, key="w")
    with pytest.raises(TypeError, match="key is the name of a feature"):
        tfr.diff(*sets, key=["id"])  # type: ignore[arg-type]
    other = shard(tmp_path / "other", [b"\xff\xff no Example"])
    assert tfr.diff(other, other).is_same


def test_the_command_says_how_it_ended(
    sets: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = sets[0], str(Path(sets[1][0]).parent)
    assert run_shown(capsys, "diff", a, a)[0] == 0
    status, out, _ = run_shown(capsys, "diff", a, b, "--key", "id")
    assert status == 1
    assert "changed         3 (records 3, 4, 5)" in out
    status, out, _ = run_shown(capsys, "diff", a, b, "--key", "id", "--json")
    facts = json.loads(out)
    assert status == 1
    assert facts["only_a"] == [7, 8]
    assert facts["features"][0] == {"name": "label", "records": 2, "example": facts["changed"][0]}
    status, _, err = run_shown(capsys, "diff", a, "missing")
    assert status == 2
    assert "missing" in err


def test_damage_is_an_error_that_says_where(
    sets: tuple[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    place = damage(sets[1][1], 0)
    status, _, err = run_shown(capsys, "diff", sets[0], str(Path(sets[1][1]).parent))
    assert status == 2
    assert sets[1][1] in err
    assert str(place.offset) in err
    status, out, err = run_shown(
        capsys, "diff", sets[0], str(Path(sets[1][1]).parent), "--on-corruption", "skip"
    )
    assert status == 1
    assert "1 damaged place was left out" in err
    assert "only in A       6" in out
