"""`tfrfast stats` against the same facts counted by NumPy and Counter."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from children import in_threads
from cli_files import run_shown as run
from record_files import write_rows
from tfrfast import _native
from tfrfast.tables.statistics import statistics

COUNT = 2500


def features_of(number: int) -> dict[str, Any]:
    random = np.random.default_rng(number)
    features: dict[str, Any] = {
        "label": number % 10 if number % 3 else 7,
        "unique": number * 10**12 - 5,
        "name": [b"cat", b"dog", "<b>ä&".encode()][number % 3],
        "dense": random.normal(size=4).astype(np.float32),
        "words": [b"w%d" % n for n in range(number % 4)] or None,
    }
    if number % 5 == 0:
        features["some"] = float(number)
    if number == 100:
        features["dense"] = np.array([np.nan, np.inf, -np.inf, 0], np.float32)
    return features


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("stats") / "x"
    write_rows(path, (features_of(number) for number in range(COUNT)))
    return str(path)


@pytest.mark.parametrize("threads", [1, 4])
def test_facts_are_those_of_the_values(shard: str, threads: int) -> None:
    found = {each.name: each for each in statistics(tfr.Reader(shard), threads=threads).features}
    assert list(found) == ["dense", "label", "name", "some", "unique", "words"]
    rows = [features_of(number) for number in range(COUNT)]
    for name, stats in found.items():
        held = [row[name] for row in rows if row.get(name) is not None]
        lists = [each if isinstance(each, (list, np.ndarray)) else [each] for each in held]
        values = [value for each in lists for value in each]
        lengths = [len(each) for each in lists]
        assert (stats.records, stats.of_records) == (len(held), COUNT)
        assert (stats.values, stats.min_values, stats.max_values) == (
            len(values),
            min(lengths),
            max(lengths),
        )
        assert stats.mean_values == pytest.approx(np.mean(lengths))
        if stats.type == "bytes":
            sizes = [len(value) for value in values]
            assert (stats.min_bytes, stats.max_bytes) == (min(sizes), max(sizes))
            assert stats.mean_bytes == pytest.approx(np.mean(sizes))
            assert (stats.min, stats.mean) == (None, None)
        else:
            numbers = [value for value in values if value == value]
            assert (stats.min, stats.max) == (min(numbers), max(numbers))
            assert stats.nan == len(values) - len(numbers)
            if name != "dense":  # the mean of both infinities is NaN
                assert stats.mean == pytest.approx(np.mean([float(each) for each in numbers]))
        counts = Counter(values)
        if stats.exact:
            assert stats.distinct == len(counts)
            expected = sorted(counts.values(), reverse=True)[:10]
            assert [count for _, count in stats.frequent] == expected
            assert all(counts[value] == count for value, count in stats.frequent)
        else:
            assert stats.distinct == pytest.approx(len(set(map(str, values))), rel=0.08)
    assert found["label"].exact
    assert not found["unique"].exact
    assert sum(found["label"].histogram.counts) == COUNT
    assert found["name"].histogram.of == "bytes"


def test_histograms_have_all_values_however_large(tmp_path: Path) -> None:
    values = {
        "time": [1_700_000_000_000_000_000] * 50,
        "times": [1_700_000_000_000_000_000 + (n % 2) * 300 for n in range(50)],
        "ends": [2**63 - 1 if n % 2 else -(2**63) for n in range(50)],
        "float": [3e38] * 50,
        "small": [0.1] * 50,
    }
    write_rows(
        tmp_path / "x",
        (dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)),
    )
    for stats in statistics(tfr.Reader(str(tmp_path / "x"))).features:
        assert sum(stats.histogram.counts) == 50, stats.name
        assert stats.histogram.edges == sorted(stats.histogram.edges)


def test_frequent_values_are_found_among_many_rare_ones() -> None:
    random = np.random.default_rng(5)
    values = random.integers(0, 2**60, 300_000)
    values[::10] = 42
    values[5::50] = -7
    summary = _native.ValueSummary()
    for first in range(0, len(values), 7_000):
        summary.add_ints(values[first : first + 7_000])
    facts = summary.facts(2, "int64")
    (most, most_count), (second, second_count) = facts["frequent"]
    assert (most, second) == (42, -7)
    assert 30_000 - facts["uncounted"] <= most_count <= 30_000
    assert 6_000 - facts["uncounted"] <= second_count <= 6_000
    assert facts["uncounted"] < 300_000 / 2048
    assert facts["distinct"] == pytest.approx(len(set(values.tolist())), rel=0.06)
    count, *_, low, high = facts["numbers"]
    assert (low, high, count) == (values.min(), values.max(), 300_000)


def test_facts_are_of_whole_calls_while_other_threads_add() -> None:
    values, calls = np.full(1_000_000, 7), 20
    summary = _native.ValueSummary()

    def add() -> None:
        for _ in range(calls):
            summary.add_ints(values)

    def look() -> None:
        found = 0
        while found < calls * len(values):
            facts = summary.facts(1, "int64")
            found = facts["numbers"][0]
            assert found % len(values) == 0
            assert facts["frequent"] == ([(7, found)] if found else [])

    in_threads([add, look])


def test_strings_are_kept_through_forgetting() -> None:
    summary = _native.ValueSummary()
    words = [b"often" if n % 3 == 0 else b"rare %d" % n for n in range(30_000)]
    offsets = np.concatenate([[0], np.cumsum([len(word) for word in words])])
    summary.add_strings(np.frombuffer(b"".join(words), np.uint8), offsets)
    assert summary.facts(1, "bytes")["frequent"][0][0] == b"often"
    with pytest.raises(ValueError, match="0 to 5 of 3: offsets must ascend, and lie from 0 to 3."):
        summary.add_strings(np.zeros(3, np.uint8), np.array([0, 5]))


def test_json_is_json(shard: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, shown, _ = run(capsys, "stats", shard, "--json")
    assert status == 0
    facts = json.loads(shown, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert facts["records"] == COUNT
    assert facts["features"]["label"]["distinct"] == 10
    assert facts["features"]["dense"]["max"] == "inf"
    assert {each["value"] for each in facts["features"]["name"]["frequent"]} == {
        "cat",
        "dog",
        "<b>ä&",
    }


def test_a_set_without_features(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tfr.Writer(tmp_path / "empty").close()
    status, shown, _ = run(capsys, "stats", tmp_path / "empty")
    assert status == 0
    assert "without features" in shown


def test_statistics_need_no_call_that_only_linux_has(
    shard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    assert statistics(tfr.Reader(shard)).num_records == COUNT
