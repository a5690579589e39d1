"""The choice of steps (`only`), and the later step in each step (`Later`)."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reference_order
import tfrfast as tfr
from tfrfast.steps import steps as steps_module

LENGTHS = [5, 0, 130, 1, 17]
#: For each step: the number of its episode, then its own number.
PLACES = np.array([(e, i) for e, count in enumerate(LENGTHS) for i in range(count)])
SPECS: Any = {"s/at": tfr.FixedLen((2,), "int64"), "kind": tfr.FixedLen((), "int64")}


@pytest.fixture
def path(tmp_path: Path) -> str:
    name = str(tmp_path / "data")
    with tfr.Writer(name) as writer:
        for number, steps in enumerate(LENGTHS):
            at = [(number, step) for step in range(steps)]
            features: Any = {"kind": number % 2, "s/at": np.reshape(at, -1)} if steps else {}
            images = [b"%d" % step * 300 for step in range(steps)]
            features |= {"s/image": images, "s/speed": np.arange(steps) / 4.0} if steps else {}
            writer.write(tfr.encode_example(features))
    return name


def places(steps: tfr.Steps) -> np.ndarray:
    return tfr.parse_example(steps[:], SPECS)["s/at"]


CHOICES: Any = {
    "numbers": ([7, 3, -1], lambda n: np.isin(n, [3, 7, 152])),
    "a slice": (slice(10, None, 7), lambda n: (n >= 10) & (n % 7 == 3)),
    "a mask": (np.arange(153) % 3 == 0, lambda n: n % 3 == 0),
    "a function": (lambda batch: batch["s/speed"] > 1, lambda n: PLACES[n, 1] > 4),
    "of several": (
        lambda batch: (batch["kind"] == 0) & (batch["s/at"][:, 1] % 2 == 1),
        lambda n: (PLACES[n, 0] % 2 == 0) & (PLACES[n, 1] % 2 == 1),
    ),
    "none": ([], lambda n: n < 0),
}


@pytest.mark.parametrize("name", CHOICES)
def test_only_chosen_steps_are_there(path: str, name: str) -> None:
    only, wanted = CHOICES[name]
    numbers = np.flatnonzero(wanted(np.arange(len(PLACES))))
    made = tfr.Steps(path, along="s/", only=only)
    for steps in (made, pickle.loads(pickle.dumps(made))):
        assert (len(steps), steps._fingerprint) == (len(numbers), made._fingerprint)
        assert places(steps).tolist() == PLACES[numbers].tolist()
        assert steps.only is not None
        assert steps.only.tolist() == numbers.tolist()
        found = [steps.locate(i)[1:] for i in range(len(steps))]
        assert found == [tuple(each) for each in PLACES[numbers].tolist()]
        lengths = np.bincount(PLACES[numbers, 0], minlength=len(LENGTHS))
        assert steps.episodes.lengths.tolist() == lengths.tolist()
        seen = [i for batch in tfr.Loader(steps, 8, seed=3) for i in batch.indices.tolist()]
        assert sorted(seen) == list(range(len(numbers)))
        with pytest.raises(IndexError):
            steps[len(steps)]


def test_a_function_sees_windows_and_is_called_once_for_each_step(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    built = []
    once = steps_module.in_memory
    monkeypatch.setattr(steps_module, "in_memory", lambda *of: built.append(of) or once(*of))

    def moves(batch: tfr.Batch) -> np.ndarray:
        seen.extend(batch.indices.tolist())
        assert batch["s/at"].shape[1:] == (3, 2)
        for some in (batch, batch[::3], batch[batch.indices > 5]):
            for same in (some, pickle.loads(pickle.dumps(some))):
                assert np.array_equal(
                    np.stack([same.episodes, same.steps], 1), PLACES[some.indices]
                )
        return batch["s/at/valid"].all(1)

    windows = {"s/at": tfr.Window(before=1, after=1)}
    steps = tfr.Steps(path, along="s/", windows=windows, only=moves, index="memory")
    assert seen == list(range(len(PLACES)))
    assert len(built) == 1
    assert len(steps) == sum(max(0, count - 2) for count in LENGTHS)
    same = tfr.Steps(path, along="s/", windows=windows, only=steps.only)
    assert same._fingerprint == steps._fingerprint
    assert steps._fingerprint != tfr.Steps(path, along="s/", windows=windows)._fingerprint


def test_what_chooses_no_steps_is_said(path: str) -> None:
    for only, error, says in (
        ([1, 2, 1], ValueError, "names a step twice"),
        ([153], IndexError, "Step 153 does not exist"),
        (lambda batch: batch["s/at"] > 1, TypeError, r"must return a mask.*\(153, 2\)"),
        (lambda batch: batch["s/jaw"] > 1, (KeyError, ValueError, tfr.FeatureError), "s/jaw"),
    ):
        with pytest.raises(error, match=says):
            tfr.Steps(path, along="s/", only=only)
    kept = pickle.dumps(tfr.Steps(path, along="s/", only=[1]))
    with tfr.Writer(path, overwrite=True) as writer:
        writer.write(tfr.encode_example({"s/at": [0, 0], "s/speed": [0.5]}))
    with pytest.raises(tfr.StaleIndexError, match="Steps were chosen among other steps"):
        pickle.loads(kept)


def test_damaged_steps_that_a_function_needs_are_not_chosen(path: str) -> None:
    tfr.build_steps(path, along="s/")
    data, times = Path(path).read_bytes(), os.stat(path)
    at = data.index(np.float32(20).tobytes())
    Path(path).write_bytes(data[:at] + b"?" + data[at + 1 :])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    steps = tfr.Steps(path, along="s/", only=lambda b: b["s/speed"] > 3, on_corruption="skip")
    left = set(map(tuple, PLACES[PLACES[:, 1] > 12])) - set(map(tuple, places(steps)))
    assert {episode for episode, _ in left} == {2}
    assert (2, 80) in left
    assert len(left) <= 64


def later_step(seed: int, number: int, step: int, steps: int, low: int, high: int) -> int | None:
    """The draw as docs/permutation.md specifies it."""
    left = steps - 1 - step
    if left < low:
        return None
    word = reference_order.siphash24(reference_order.derive_key(8, seed % 2**64, 0), [number])
    return step + low + (word * (min(left, high) - low + 1) >> 64)


@pytest.mark.parametrize(("low", "high"), [(1, None), (0, 3), (20, 40)])
def test_a_later_step_is_drawn_by_seed_and_number(path: str, low: int, high: Any) -> None:
    later = {
        name: tfr.Later(of, seed=-7, min_steps=low, max_steps=high)
        for name, of in (("goal/at", "s/at"), ("goal/image", "s/image"))
    }
    windows: Any = {**later, "s/image": tfr.Window(before=1)}
    chosen = np.arange(1, len(PLACES), 2)
    steps = tfr.Steps(path, along="s/", windows=windows, only=chosen)
    specs: Any = {
        **SPECS,
        "goal/at": SPECS["s/at"],
        "goal/at/valid": tfr.FixedLen((), "int64"),
        "goal/image": tfr.FixedLen((), "bytes"),
        "s/image": tfr.FixedLen((2,), "bytes"),
    }
    batch = tfr.parse_example(steps[:], specs)
    assert batch["s/at"].tolist() == PLACES[chosen].tolist()
    for row, number in enumerate(chosen.tolist()):
        episode, step = PLACES[number].tolist()
        wanted = later_step(-7, number, step, LENGTHS[episode], low, high or 1 << 30)
        goal = LENGTHS[episode] - 1 if wanted is None else wanted
        assert batch["goal/at"][row].tolist() == [episode, goal]
        assert batch["goal/image"][row] == b"%d" % goal * 300
        assert batch["goal/at/valid"][row] == (wanted is not None)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"windows": {"g": tfr.Later("s/jaw", seed=1)}}, "'g' is a later step of 's/jaw'"),
        ({"windows": {"s/at": tfr.Later("s/at", seed=1)}}, "would be called 's/at'"),
        ({"rename": {"s/at": "kind"}}, "An episode has a feature 'kind' of its own"),
        ({"windows": {"kind": tfr.Later("s/at", seed=1)}}, "a feature 'kind' of its own"),
        (
            {"rename": {"s/speed": "s/at/valid"}, "windows": {"s/at": tfr.Window()}},
            "the window of 's/at' would be called 's/at/valid'",
        ),
    ],
)
def test_two_features_of_one_name_are_refused(path: str, options: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        _ = tfr.Steps(path, along="s/", **options)[0]


def test_no_two_options_have_one_fingerprint(path: str) -> None:
    made: Any = [
        {"rename": {"s/at": "s/x"}},
        {"absent": {"s/at": b"s/x"}},
        {"rename": {"s/at": "s/x", "s/speed": "s/y"}},
        {"rename": {"s/at": "s/x"}, "absent": {"s/speed": [1.0]}},
        {"windows": {"s/x": tfr.Later("s/at", seed=1)}},
        {"windows": {"s/x": tfr.Later("s/at", seed=2)}},
        {"windows": {"s/x": tfr.Later("s/at", seed=2, max_steps=9)}},
        {"windows": {"s/at": tfr.Window(before=1)}},
        {"windows": {"s/at": tfr.Window(after=1)}},
        {"only": slice(0)},
        {"only": slice(3)},
        {},
    ]
    found = [tfr.Steps(path, along="s/", **each)._fingerprint for each in made]
    assert len(set(found)) == len(made)


def test_a_window_over_empty_rows_says_that_its_steps_are_real(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    flat, lengths = "s/w/ragged_flat_values", "s/w/ragged_row_lengths_0"
    with tfr.Writer(path) as writer:
        writer.write(tfr.encode_example({flat: [5, 6], lengths: [0, 0, 2]}))
    window = {flat: tfr.Window(before=1)}
    for absent, values in ({}, []), ({flat: [9]}, [9]):
        steps = tfr.Steps(path, along="s/", windows=window, absent=absent)
        batch = tfr.parse_example(
            steps[:],
            {flat: tfr.VarLen("int64"), f"{flat}/valid": tfr.FixedLen((2,), "int64")},
        )
        assert [each.tolist() for each in batch[flat]] == [values, values, [5, 6]]
        assert batch[f"{flat}/valid"].tolist() == [[0, 1], [1, 1], [1, 1]]
