"""Means and deviations equal the exact results, rounded once."""

import errno
import json
import math
import os
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from patience import at_least_once
from record_files import flip_byte, write_rows
from tfrfast import _native
from tfrfast.jobs import quantiles as quantiles_module
from tfrfast.jobs import statistics as statistics_module
from tfrfast.jobs.quantiles import KeptNumbers
from tfrfast.tables.number_sums import NumberSums, sums_of


def real(values: Any) -> tuple[float, float]:
    numbers = [Fraction(each) for each in values]
    mean = sum(numbers) / len(numbers)
    return float(mean), math.sqrt(sum((each - mean) ** 2 for each in numbers) / len(numbers))


def sums(values: np.ndarray) -> NumberSums:
    made = _native.NumberSums(1)
    (made.add_floats if values.dtype == np.float32 else made.add_ints)(values)
    kind = str(values.dtype)
    return sums_of(made.facts(kind == "float32")[0], kind)


RNG = np.random.default_rng(2)
VALUES = {
    "any floats": RNG.integers(0, 2**32, 3000, dtype=np.uint32).view(np.float32),
    "far from zero": np.float32(1e6) + RNG.random(999, np.float32),
    "cancelled": np.array([3e38, 1e-45, -3e38, 3e38, -1e-45, -3e38, 2e-45], np.float32),
    "one": np.array([-0.1], np.float32),
    "any integers": RNG.integers(-(2**63), 2**63, 500),
    "ends": np.array([-(2**63), 2**63 - 1, -(2**63)]),
}


@pytest.mark.parametrize("name", VALUES)
def test_sums_are_exact_in_any_order(name: str) -> None:
    values = VALUES[name]
    values = values[np.isfinite(values)]
    whole, half = sums(values), len(values) // 2
    numbers = values.tolist()
    assert (whole.mean, whole.std) == real(numbers)
    assert (whole.min, whole.max, whole.values) == (min(numbers), max(numbers), len(numbers))
    parts = sums(values[half:]), sums(values[:half]), sums(values[:0])
    assert parts[2].plus(parts[0]).plus(parts[1]) == whole


def test_what_is_no_number_is_counted_apart() -> None:
    nan, inf = math.nan, math.inf
    for values, mean, numbers in (
        ([nan, 1, 3], 2.0, 2),
        ([inf, 1, nan], inf, 2),
        ([-inf, 1], -inf, 2),
        ([inf, -inf], nan, 2),
        ([nan], nan, 0),
    ):
        found = sums(np.array(values, np.float32))
        assert np.array_equal(found.mean, mean, equal_nan=True)
        assert found.numbers == numbers
        assert math.isnan(found.std) == (mean != 2)
    one, none = sums(np.array([4, 5])), sums(np.array([], np.int64))
    assert none.plus(one) == one.plus(none) == one


def write(path: Path) -> tuple[np.ndarray, np.ndarray]:
    actions = (1000 + RNG.random((700, 3), np.float32)) * np.array([1, -5, 1e-9], np.float32)
    labels = RNG.integers(-9, 9, 700)
    for shard in range(2):
        with tfr.Writer(str(path / f"data-{shard}")) as writer:
            for begin in range(350 * shard, 350 * shard + 350, 35):
                some = slice(begin, begin + 35)
                features: Any = {
                    "s/action": actions[some].reshape(-1),
                    "s/label": labels[some],
                    "s/image": [b"x" * 50] * 35,
                    "number": begin,
                    "some": labels[begin : begin + begin % 3],
                }
                writer.write(tfr.encode_example({k: v for k, v in features.items() if np.size(v)}))
    return actions, labels


def test_steps_have_statistics_of_each_position(tmp_path: Path) -> None:
    actions, labels = write(tmp_path)
    steps = tfr.Steps(str(tmp_path / "data-*"), along="s/")
    found = tfr.statistics(steps, threads=1, quantiles=(0.3,))
    assert sorted(found) == ["number", "s/action", "s/label", "some"]
    for position in range(3):
        mean, std = real(actions[:, position].tolist())
        stats = found["s/action"]
        assert (stats.mean[position], stats.std[position]) == (mean, std)
    label = found["s/label"]
    assert (float(label.mean), float(label.std)) == real(labels.tolist())
    assert (label.min, label.max, label.num_values) == (labels.min(), labels.max(), 700)
    with ProcessPoolExecutor(2) as executor:
        for other in (
            tfr.statistics(steps, threads=3, quantiles=(0.3,)),
            tfr.statistics(steps, executor=executor, quantiles=(0.3,)),
        ):
            for name, stats in found.items():
                assert all(map(np.array_equal, stats, other[name]))
    chosen = tfr.Steps(steps.records, along="s/", only=lambda each: each["s/label"] > 0)
    windows = {"s/action": tfr.Window(before=2, after=30, pad=None)}
    cut = tfr.statistics(tfr.Steps(steps.records, along="s/", windows=windows), quantiles=(0.3,))
    for name, stats in found.items():
        assert all(map(np.array_equal, stats, cut[name]))
    assert (cut.num_records, cut.num_episodes) == (700, 20)
    positive = tfr.statistics(chosen, features=["s/label"])
    assert list(positive) == ["s/label"]
    assert float(positive["s/label"].mean) == real(labels[labels > 0].tolist())[0]


def test_records_have_statistics(tmp_path: Path) -> None:
    _, labels = write(tmp_path)
    found = tfr.statistics(str(tmp_path / "data-*"))
    some = [int(each) for at in range(0, 700, 35) for each in labels[at : at + at % 3]]
    assert (float(found["some"].mean), int(found["some"].num_values)) == (real(some)[0], len(some))
    assert found["s/action"].mean.shape == (105,)
    assert float(found["number"].mean) == 665 / 2
    assert tfr.statistics(str(tmp_path / "data-*"), features=["s/image"]) == {}
    with ProcessPoolExecutor(2) as executor:
        again = tfr.statistics(str(tmp_path / "data-*"), executor=executor, index="memory")
    assert np.array_equal(again["s/action"].std, found["s/action"].std)
    reader = tfr.Reader(str(tmp_path / "data-0"))
    nothing = tfr.Steps(reader, along="s/", only=[])
    empty = tfr.statistics(
        nothing, features={"s/action": tfr.FixedLen((3,), "float32")}, quantiles=(0.5,)
    )
    assert np.isnan(empty["s/action"].quantiles).all()
    with pytest.raises(ValueError, match="NaN or infinite"):
        empty.to_openvla(path=tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()
    assert np.isnan(empty["s/action"].mean).tolist() == [True] * 3
    assert empty["s/action"].num_values.tolist() == [0] * 3


def test_skipped_records_do_not_count(tmp_path: Path) -> None:
    write(tmp_path)
    paths = [str(tmp_path / f"data-{shard}") for shard in range(2)]
    tfr.build_steps(paths, along="s/")
    number = tfr.Reader(paths)[13].index(b"number")
    times = os.stat(paths[1])
    flip_byte(paths[1], tfr.Reader(paths).locate(13).offset + 12 + number + 10)
    os.utime(paths[1], ns=(times.st_atime_ns, times.st_mtime_ns))
    reader = tfr.Reader(paths, on_corruption="skip")
    with ProcessPoolExecutor(2) as executor:
        for workers in ({"threads": 1}, {"executor": executor}):
            with pytest.warns(RuntimeWarning, match="Damage was left out: 1 place, the first"):
                found = tfr.statistics(reader, **workers)
            assert (found.num_records, found.num_episodes) == (19, 19)
            assert found["number"].num_values == 19
    steps = tfr.Steps(reader, along="s/", only=range(10, 700))
    with pytest.warns(RuntimeWarning, match="Damage was left out"):
        of_steps = tfr.statistics(steps)
    assert (of_steps.num_records, of_steps.num_episodes) == (655, 19)
    assert of_steps["number"].num_values == 655


QUANTILES = (0, 0.01, 0.5, 0.99, 1, 0.3333)
NUMBERS: dict[str, Any] = {
    "any floats": RNG.normal(0, 1e3, (997, 3)).astype(np.float32),
    "all sizes": 10 ** RNG.uniform(-40, 38, (500, 2)).astype(np.float32),
    "few values": RNG.integers(-2, 2, (1000, 2)).astype(np.float32),
    "zeros": np.array([[0.0], [-0.0], [-1e-45], [1e-45], [np.nan]], np.float32),
    "infinities": np.array([[-np.inf], [1], [np.inf], [np.inf]], np.float32),
    "integers": RNG.integers(-(2**40), 2**40, (600, 2)),
    "many positions": RNG.normal(size=(50, 130)).astype(np.float32),
    "one": np.array([[7.5]], np.float32),
}


def test_numbers_beyond_int64_have_no_statistics(tmp_path: Path) -> None:
    features = {"n": tfr.Message.event()["summary.value.tensor.uint64_val"]}
    for name, number in (("fits", b"\x7f"), ("beyond", b"\xff" * 9 + b"\x01")):
        record = b"\x8a\x01" + bytes([len(number)]) + number
        for tag in (b"\x42", b"\x0a", b"\x2a"):
            record = tag + bytes([len(record)]) + record
        with tfr.Writer(tmp_path / name) as writer:
            writer.write(record)
    assert tfr.statistics(tmp_path / "fits", features=features)["n"].mean == 127
    with pytest.raises(tfr.FeatureError, match="'n' has values beyond int64"):
        tfr.statistics(tmp_path / "beyond", features=features)


@pytest.mark.parametrize("kept", [1 << 30, 1 << 11, 0])
@pytest.mark.parametrize("name", NUMBERS)
def test_quantiles_are_those_of_numpy(
    name: str, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics_module, "_KEPT_BYTES", kept)
    monkeypatch.setattr(statistics_module, "part_bytes", lambda *_: 1 << 10)
    monkeypatch.setattr(quantiles_module, "_BLOCK_BYTES", 1 << 10)
    rows = NUMBERS[name]
    write_rows(
        tmp_path / "a",
        ({"s/x": rows[begin : begin + 100].reshape(-1)} for begin in range(0, len(rows), 100)),
    )
    along = {"s/x": rows.shape[1]}
    windows = {"s/x": tfr.Window(before=1, after=2)}
    steps = tfr.Steps(str(tmp_path / "a"), along=along, windows=windows)
    found = tfr.statistics(steps, quantiles=QUANTILES, threads=2)["s/x"]
    shape = rows.shape[1:] if rows.shape[1] > 1 else ()
    assert found.mean.shape == shape
    assert found.num_values.max() <= len(rows)
    wanted = np.array(
        [
            [real_quantile(numbers.astype(np.float64), each) for numbers in rows.T]
            for each in QUANTILES
        ]
    )
    assert found.quantiles is not None
    assert np.array_equal(found.quantiles, wanted.reshape(-1, *shape), equal_nan=True)


def test_quantiles_take_time_by_the_number_of_positions() -> None:
    def seconds(positions: int) -> float:
        pieces = [np.ones((positions, 256), np.float32)]
        taken = []
        for _ in range(3):
            start = time.process_time()
            quantiles_module.quantiles_of(KeptNumbers(0), pieces, positions, (0.5,))
            taken.append(time.process_time() - start)
        return min(taken)

    def check() -> None:
        assert seconds(16_000) < 8 * seconds(4_000)

    at_least_once(check)


def test_a_thousand_quantiles_take_little_more_time_than_a_few() -> None:
    pieces = [RNG.normal(size=(1, 1_000_000)).astype(np.float32)]

    def seconds(count: int) -> float:
        start = time.process_time()
        quantiles_module.quantiles_of(KeptNumbers(0), pieces, 1, np.linspace(0, 1, count).tolist())
        return time.process_time() - start

    def check() -> None:
        assert seconds(1001) < 10 * seconds(16)

    at_least_once(check)


@pytest.mark.parametrize(
    "numbers",
    [
        np.arange(99_991.0, dtype=np.float32),
        np.arange(-99_991, 1),
        np.arange(700_000, dtype=np.float32) % 43,  # a sample of each 43rd number has zeros only
        np.where(np.arange(99_991) % 5000, np.float32(1), np.float32(-np.inf)),
        RNG.standard_cauchy(99_991).astype(np.float32),
        RNG.integers(0, 2, 99_991) * 2**62,
    ],
)
@pytest.mark.parametrize("quantiles", [QUANTILES, np.linspace(0, 1, 101).tolist()])
def test_quantiles_of_many_numbers_do_not_depend_on_a_sample(
    numbers: np.ndarray, quantiles: Sequence[float]
) -> None:
    wanted = [real_quantile(numbers.astype(np.float64), each) for each in quantiles]
    found = quantiles_module.quantiles_of(KeptNumbers(0), [numbers[None]], 1, quantiles)
    assert found[:, 0].tolist() == wanted


def test_tasks_of_large_data_hold_few_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"x": np.ones(1 << 15, np.int64)}  # each of one byte in a record
    write_rows(tmp_path / "a", [row] * 80)
    monkeypatch.setattr(statistics_module, "_KEPT_PART_BYTES", 1 << 20)
    held = []

    def keep(_: KeptNumbers, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        held.append(sum(each.nbytes for each in arrays))
        return []

    monkeypatch.setattr(KeptNumbers, "keep", keep)
    tfr.statistics(str(tmp_path / "a"), quantiles=(0.5,), features=["x"], threads=1)
    assert sum(held) == 80 * row["x"].nbytes
    assert max(held) < 10 << 20


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EIO])
def test_a_disk_of_temporary_files_that_fails_is_one_error(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows(tmp_path / "a", ({"x": [number]} for number in range(1000)))
    monkeypatch.setattr(statistics_module, "_KEPT_BYTES", 0)

    class Failing(FileIO):
        def write(self, _: object) -> int:
            raise OSError(number, os.strerror(number))

    file = Failing(tmp_path / "numbers", "w+")
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: file)
    said = f"Keeping numbers in a temporary file failed: {os.strerror(number)}. Quantiles"
    with pytest.raises(OSError, match=said) as caught:
        tfr.statistics(str(tmp_path / "a"), quantiles=(0.5,))
    assert (caught.value.errno, caught.value.filename) == (number, tempfile.gettempdir())
    assert caught.value.__cause__ is None
    assert file.closed


def real_quantile(numbers: np.ndarray, quantile: float) -> float:
    numbers = np.sort(numbers[~np.isnan(numbers)])
    place = quantile * (len(numbers) - 1)
    low = numbers[math.floor(place)], numbers[min(math.floor(place) + 1, len(numbers) - 1)]
    if np.isinf(low).any():
        return float(low[0] if place % 1 == 0 else low[0] + low[1])
    return float(np.quantile(numbers, quantile))


def test_a_mixture_has_statistics_of_each_source_and_of_all(tmp_path: Path) -> None:
    parts, readers = [], {}
    for number, count in enumerate((90, 300)):
        rows = RNG.normal(number, 1 + number, (count, 2)).astype(np.float32)
        with tfr.Writer(tmp_path / f"{number}") as writer:
            for begin in range(0, count, 30):
                features = {"s/x": rows[begin : begin + 30].reshape(-1), "s/n": list(range(30))}
                features[f"s/own_{number}"] = [1.0] * 30
                writer.write(tfr.encode_example(features))
        readers[f"source {number}"] = (tfr.Steps(str(tmp_path / f"{number}"), along="s/"), 1)
        parts.append(rows)
    found = tfr.statistics(tfr.Mixture(readers, seed=3), quantiles=(0.01, 0.99))
    assert sorted(found) == ["s/n", "s/x"]
    assert list(found.sources) == list(readers)
    for stats, rows in zip(
        [found, *found.sources.values()], [np.concatenate(parts), *parts], strict=True
    ):
        x = stats["s/x"]
        assert np.array_equal(x.quantiles, np.quantile(rows.astype(np.float64), (0.01, 0.99), 0))
        assert [float(each) for each in x.mean] == [real(each)[0] for each in rows.T.tolist()]
        assert (stats.num_records, stats.num_episodes) == (len(rows), len(rows) // 30)
    assert "s/own_1" in found.sources["source 1"]
    path = tmp_path / "norm_stats.json"
    norms = found.to_openpi({"state": ["s/x", "s/n"], "actions": "s/x"}, path)
    assert json.loads(path.read_text()) == norms
    x, n = found["s/x"], found["s/n"]
    assert x.quantiles is not None
    assert n.quantiles is not None
    assert norms["norm_stats"]["state"] == {
        "mean": [*x.mean, n.mean],
        "std": [*x.std, n.std],
        "q01": [*x.quantiles[0], n.quantiles[0]],
        "q99": [*x.quantiles[1], n.quantiles[1]],
    }
    vla = found.to_openvla({"action": "s/x"}, tmp_path / "x.json", mask={"action": [True, False]})
    assert json.loads((tmp_path / "x.json").read_text()) == vla
    assert list(vla) == list(readers)
    one = vla["source 1"]
    assert (one["num_transitions"], one["num_trajectories"]) == (300, 10)
    assert sorted(one["action"]) == ["mask", "max", "mean", "min", "q01", "q99", "std"]
    assert one["action"]["max"] == parts[1].max(0).astype(np.float64).tolist()
    assert not list(tmp_path.glob("*.new"))
    for mask, message in (
        ({"zz": [True]}, "mask names 'zz', and the file has action"),
        ({"action": [True]}, "for each of 2 numbers"),
        ({"action": True}, "for each of 2 numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            found.to_openvla({"action": "s/x"}, mask=mask)
    with pytest.raises(KeyError, match="no statistics of 's/y'"):
        found.to_openpi({"state": "s/y"})


def test_names_of_a_file_are_one_feature_and_one_quantile_each(tmp_path: Path) -> None:
    write_rows(tmp_path / "a", ({"a/x": [number], "b/x": [-number]} for number in range(1000)))
    found = tfr.statistics(tmp_path / "a", quantiles=(0.01, 0.014, 0.5, 0.99, 0.994))
    for written in (found.to_openpi, found.to_openvla):
        with pytest.raises(ValueError, match="Both 'a/x' and 'b/x' would be called 'x'"):
            written()
    x = found.to_openvla({"x": "a/x"})["x"]
    quantiles = {name: x[name] for name in x if name.startswith("q")}
    values = np.quantile(np.arange(1000.0), found.quantiles).tolist()
    names = ("q01", "q0.014", "q50", "q99", "q0.994")
    assert quantiles == {name: [each] for name, each in zip(names, values, strict=True)}


def test_quantiles_lie_between_0_and_1(tmp_path: Path) -> None:
    write_rows(tmp_path / "a", [{"x": 0.5}])
    with pytest.raises(ValueError, match="from 0 to 1"):
        tfr.statistics(str(tmp_path / "a"), quantiles=(1, 99))
