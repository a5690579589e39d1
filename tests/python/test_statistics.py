"""Means and deviations equal the exact results, rounded once."""

import math
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from tfrfast import _native
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
    found = tfr.statistics(steps, threads=1)
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
            tfr.statistics(steps, threads=3),
            tfr.statistics(steps, executor=executor),
        ):
            for name, stats in found.items():
                assert all(map(np.array_equal, stats, other[name]))
    chosen = tfr.Steps(steps.records, along="s/", only=lambda each: each["s/label"] > 0)
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
    empty = tfr.statistics(nothing, features={"s/action": tfr.FixedLen((3,), "float32")})
    assert np.isnan(empty["s/action"].mean).tolist() == [True] * 3
    assert empty["s/action"].num_values.tolist() == [0] * 3
    with pytest.raises(TypeError, match="each source"):
        tfr.statistics(tfr.Mixture({"one": (reader, 1)}, seed=0))  # type: ignore[arg-type]
