"""Pictures and normalised numbers of windows of steps, on every road that needs no framework."""

from __future__ import annotations

import itertools
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from image_records import GOLDEN, NAMES
from tfrfast import _native
from tfrfast.columns.arrow_nodes import ArrowNode
from tfrfast.columns.shown import png_of

needs_codecs = pytest.mark.skipif(
    not _native.DECODES_IMAGES, reason="tfrfast was built without libjpeg-turbo and libpng"
)
LENGTHS = (5, 1, 7)
STATES = np.random.default_rng(4).normal(3, 20, (sum(LENGTHS), 3)).astype(np.float32)
STATES[2] = 0  # a real step of zeros
MEAN, STD = STATES.mean(0), STATES.std(0)


def picture_of(step: int) -> bytes:
    return (GOLDEN / NAMES[step % len(NAMES)]).read_bytes()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(tmp_path_factory.mktemp("windows") / "a.tfrecord")


def write(path: Path, damaged: dict[int, bytes] | None = None) -> str:
    first = 0
    with tfr.Writer(path) as writer:
        for length in LENGTHS:
            steps = range(first, first + length)
            pictures = [(damaged or {}).get(step, picture_of(step)) for step in steps]
            writer.write(
                tfr.encode_example(
                    {
                        "steps/image": pictures,
                        "steps/wrist": [picture_of(step + 2) for step in steps],
                        "steps/state": STATES[first : first + length].reshape(-1),
                        "steps/n": list(steps),
                    }
                )
            )
            first += length
    return str(path)


def windowed(path: str, pad: Any) -> tfr.Steps:
    windows = {
        "steps/image": tfr.Window(before=2, pad=pad),
        "steps/wrist": tfr.Window(after=1, pad=pad),
        "steps/state": tfr.Window(before=1, after=1, pad=pad),
    }
    return tfr.Steps(path, along="steps/", windows=windows, index="memory")


def frames_of(step: int, before: int, after: int, pad: Any) -> Iterator[int | None]:
    """The steps of a window; None stands for a step beyond the ends."""
    begins = np.concatenate([[0], np.cumsum(LENGTHS)])
    begin = begins[np.searchsorted(begins, step, "right") - 1]
    end = begins[np.searchsorted(begins, step, "right")]
    for wanted in range(step - before, step + after + 1):
        inside = begin <= wanted < end
        yield wanted if inside else (None if pad == "zeros" else min(max(wanted, begin), end - 1))


def alone(step: int | None, draw: Any = None, **options: Any) -> np.ndarray:
    """The picture of a step, decoded without a window."""
    spec = tfr.Image((12, 10), **options)
    record = [tfr.encode_example({"x": picture_of(0 if step is None else step)})]
    pixels: np.ndarray = tfr.parse_example(record, {"x": spec})["x"][0]
    return np.zeros_like(pixels) if step is None else pixels


@needs_codecs
@pytest.mark.parametrize("pad", ["repeat", "zeros", None])
def test_a_window_of_pictures_is_its_pictures(path: str, pad: Any) -> None:
    features = {
        "steps/image": tfr.Image((12, 10), crop="center", layout="CHW", dtype="float32"),
        "steps/wrist": tfr.Image(),
        "steps/n": tfr.FixedLen((), "int64"),
    }
    steps = windowed(path, pad)
    loader = tfr.Loader(steps, 4, features=features, shuffle=False, threads=2)
    assert loader.features is not None
    again = tfr.parse_example(steps[:], loader.features)
    seen = 0
    for batch in loader:
        rows = range(seen, seen + len(batch.indices))
        assert np.array_equal(batch["steps/image"], again["steps/image"][rows.start : rows.stop])
        for row, n in enumerate(batch["steps/n"].tolist()):
            for frame, step in enumerate(frames_of(n, 2, 0, pad)):
                wanted = alone(step, crop="center", layout="CHW", dtype="float32")
                assert np.array_equal(batch["steps/image"][row, frame], wanted)
            wrist = batch["steps/wrist"][row]
            assert len(wrist) == 2 == len(again["steps/wrist"][rows.start + row])
            for picture, step in zip(wrist, frames_of(n, 0, 1, pad), strict=True):
                own = tfr.parse_example(
                    [tfr.encode_example({"x": picture_of(step + 2)})] if step is not None else [],
                    {"x": tfr.Image()},
                )["x"]
                assert np.array_equal(picture, own[0] if step is not None else np.zeros((0, 0, 3)))
        seen += len(rows)
    assert seen == len(steps) == (13 if pad else 6)


@needs_codecs
@pytest.mark.parametrize("draws", ["row", "frame"])
def test_frames_of_a_row_are_cut_alike_or_each_by_itself(path: str, draws: Any) -> None:
    spec = tfr.Image((12, 10), crop="random", flip=True, area=(0.1, 0.6), draws=draws)
    steps = windowed(path, "repeat")
    one = tfr.Image((12, 10), crop="random", flip=True, area=(0.1, 0.6))
    plain = tfr.Steps(path, along="steps/", index="memory")
    loaders = [
        tfr.Loader(steps, 13, features={"steps/image": spec}, seed=2, threads=1),
        tfr.Loader(steps, 5, features={"steps/image": spec}, seed=2, threads=3),
    ]
    batch = next(iter(loaders[0]))
    rest = np.concatenate([each["steps/image"] for each in loaders[1]])
    assert np.array_equal(batch["steps/image"], rest)
    single = next(iter(tfr.Loader(plain, 13, features={"steps/image": one}, seed=2)))
    crops = batch.crops["steps/image"]
    assert crops["top"].shape == (13, 3)
    alike = 0
    for row, n in enumerate(batch.indices.tolist()):
        where = [tuple(int(crops[field][row, frame]) for field in crops) for frame in range(3)]
        known = list(frames_of(n, 2, 0, "repeat"))
        for frame in (1, 2):
            same_step = picture_of(known[frame]) == picture_of(known[frame - 1])
            alike += same_step and where[frame] == where[frame - 1]
        if draws == "row":
            assert np.array_equal(batch["steps/image"][row, 2], single["steps/image"][row])
    repeated = sum(
        picture_of(a) == picture_of(b)
        for n in range(13)
        for a, b in itertools.pairwise(frames_of(n, 2, 0, "repeat"))
    )
    assert alike == (repeated if draws == "row" else 0)


@needs_codecs
@pytest.mark.parametrize("image", [b"", b"not a picture", picture_of(0)[:90]])
def test_a_damaged_picture_names_its_step_and_its_place(tmp_path: Path, image: bytes) -> None:
    path = write(tmp_path / "a.tfrecord", {8: image})
    for pad in ("repeat", "zeros"):
        steps = windowed(path, pad)
        grey = tfr.Image((12, 10), damaged="grey")
        for step in range(6, 13):
            loader = tfr.Loader(
                steps, 1, features={"steps/image": tfr.Image((12, 10))}, shuffle=False, threads=1
            )
            loader.load_state_dict(loader.state_dict() | {"position": step})
            batch: Any = None
            if 8 <= step <= 10:
                with pytest.raises(tfr.FeatureError) as failed:
                    next(iter(loader))
                assert f"Step {step - 6} of record 2 of '{path}'" in str(failed.value)
                assert f"picture {2 - (step - 8)} of its window: " in str(failed.value)
                batch = tfr.parse_example(
                    [steps[step]], {"steps/image": tfr.Image((12, 10), damaged="grey", frames=3)}
                )
                assert (batch["steps/image"][0, 10 - step] == 128).all()
            else:
                batch = next(iter(loader))
            damaged = batch.crops["steps/image"]["damaged"][0].tolist()
            assert damaged == [int(8 <= step <= 10 and 10 - step == frame) for frame in range(3)]
        assert grey.frames is None


@needs_codecs
def test_a_row_of_another_number_of_pictures_says_what_to_ask_for(path: str) -> None:
    record = windowed(path, "repeat")[0]
    for spec in (tfr.Image((12, 10)), tfr.Image((12, 10), frames=2), tfr.Image(frames=4)):
        with pytest.raises(tfr.FeatureError, match=r"tfr.Image\(frames=...\)"):
            tfr.parse_example([record], {"steps/image": spec})


@needs_codecs
def test_records_of_unusual_forms_keep_their_own_pictures(path: str) -> None:
    """The same feature twice: the last one counts, whatever was decoded before."""
    for spec in (tfr.Image((12, 10), frames=2), tfr.Image(frames=2)):
        rows = [
            [tfr.encode_example({"x": [picture_of(a), picture_of(b)]}) for a, b in pairs]
            for pairs in (((0, 1), (1, 0), (2, 2)), ((1, 2), (2, 1), (0, 1)))
        ]
        mixed = [rows[0][0], rows[0][0] + rows[1][1], rows[1][2] + rows[0][2], rows[1][0]]
        plain = [rows[0][0], rows[1][1], rows[0][2], rows[1][0]]
        one, other = (tfr.parse_example(each, {"x": spec})["x"] for each in (mixed, plain))
        for row in range(4):
            for left, right in zip(one[row], other[row], strict=True):
                assert np.array_equal(left, right)


def expected_states(step: int, pad: Any, formula: Any) -> np.ndarray:
    return np.array(
        [
            np.zeros(3) if each is None else formula(STATES[each].astype(np.float64))
            for each in frames_of(step, 1, 1, pad)
        ]
    ).astype(np.float32)


CONSTANT = np.array([True, True, False])
NORMALISED = {
    "scaled": (
        tfr.Scaled(tfr.FixedLen((3, 3), "float32"), MEAN, STD, epsilon=1e-6),
        lambda x: (x - MEAN.astype(np.float64)) / (STD.astype(np.float64) + 1e-6),
    ),
    "of openpi": (
        tfr.Bounds(
            tfr.FixedLen((3, 3), "float32"),
            [-20, 3, 5],
            [20, 3, 9],
            epsilon=1e-6,
            constant="scaled",
        ),
        lambda x: (x - [-20, 3, 5]) / (np.array([40, 0, 4]) + 1e-6) * 2 - 1,
    ),
    "of OpenVLA": (
        tfr.Bounds(
            tfr.FixedLen((3, 3), "float32"),
            [-20, 3, 5],
            [20, 3, 9],
            mask=[True, True, False],
            clip=True,
            epsilon=1e-8,
        ),
        lambda x: [np.clip(2 * (x[0] + 20) / (40 + 1e-8) - 1, -1, 1), 0, x[2]],
    ),
    "of bounds that are equal where they are masked": (
        tfr.Bounds(
            tfr.FixedLen((3, 3), "float32"), [-20, 3, 5], [20, 3, 5], mask=[True, False, False]
        ),
        lambda x: [2 * (x[0] + 20) / 40 - 1, x[1], x[2]],
    ),
    "of a mask and zeros": (
        tfr.Scaled(
            tfr.FixedLen((3, 3), "float32"),
            [1, np.nan, 1],
            [2, 0, 0],
            mask=[True, False, False],
            constant=[False, False, True],
        ),
        lambda x: [(x[0] - 1) / 2, x[1], 0],
    ),
    "padded": (
        tfr.Scaled(tfr.FixedLenSequence((3,), "float32"), MEAN, STD),
        lambda x: (x - MEAN.astype(np.float64)) / STD.astype(np.float64),
    ),
}


@pytest.mark.parametrize("pad", ["repeat", "zeros"])
@pytest.mark.parametrize("how", NORMALISED)
def test_windows_are_normalised_and_zeros_of_padding_stay(path: str, pad: Any, how: str) -> None:
    spec, formula = NORMALISED[how]
    steps = windowed(path, pad)
    loader = tfr.Loader(steps, 4, features={"steps/state": spec}, seed=1, threads=2)
    for batch in loader:
        for row, n in enumerate(batch.indices.tolist()):
            wanted = expected_states(n, pad, formula)
            found = batch["steps/state"][row]
            assert found.dtype == np.float32
            assert np.allclose(found, wanted, rtol=1e-6, atol=1e-6)
    assert loader.features is not None
    parsed = tfr.parse_example(steps[:], loader.features)["steps/state"]
    scanned = tfr.scan(steps, features={"steps/state": spec}, batch_size=5)
    leaves = []
    for batch in ArrowNode.batches(scanned):
        (node,) = batch.children
        while node.children:
            (node,) = node.children
        leaves.append(node.column())
    assert np.array_equal(np.concatenate(leaves).reshape(parsed.shape), parsed)
    if pad == "zeros":
        assert (parsed[0, 0] == 0).all()


def test_scaling_that_makes_no_sense_is_refused() -> None:
    numbers = tfr.FixedLen((4, 3), "float32")
    for spec, message in (
        (tfr.Scaled(numbers, [0, 0], [1, 1]), "must end in it"),
        (tfr.Scaled(numbers, [0] * 3, [1, 1, np.nan]), "finite"),
        (tfr.Bounds(numbers, [0] * 3, [1, 1, 0], constant="scaled"), "divided by 0"),
        (tfr.Scaled(numbers, 0, [1, 1, 1e-310]), "or by nearly 0"),
        (tfr.Scaled(numbers, [0] * 5, [1] * 4), r"of one shape, not \(5,\) and \(4,\)"),
        (tfr.Scaled(numbers, 0, 1, epsilon=-1), "epsilon is 0 or more, not -1"),
        (tfr.Bounds(numbers, 0, 1, mask=[1, 1, 0]), "True or False, not numbers"),
        (tfr.Bounds(numbers, [0] * 3, 1, mask=[True, False]), r"shape \(3,\), not \(2,\)"),
        (tfr.Bounds(numbers, 0, 1, constant="none"), '"zero", "scaled" or a mask'),
        (tfr.Scaled(tfr.FixedLen((3,), "int64"), 0, 1), "only float32"),
        (tfr.Scaled(tfr.Image(), 0, 1), "not Image"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            tfr.parse_example([], {"x": spec})


def test_lists_of_any_length_and_defaults_are_normalised_too() -> None:
    records = [tfr.encode_example({"x": [3.0, 5.0]}), tfr.encode_example({})]
    features = {
        "x": tfr.Scaled(tfr.VarLen("float32"), 1, 2),
    }
    assert tfr.parse_example(records, features)["x"].tolist() == [[1.0, 2.0], []]
    fixed = {"x": tfr.Scaled(tfr.FixedLen((2,), "float32", default=[1.0, 1.0]), 1, 2)}
    assert tfr.parse_example(records, fixed)["x"].tolist() == [[1.0, 2.0], [0.0, 0.0]]


@needs_codecs
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_pictures_that_no_row_shares_are_not_kept(tmp_path: Path) -> None:
    noise = np.random.default_rng(0)
    with tfr.Writer(tmp_path / "a") as writer:
        for _ in range(8):
            pictures = noise.integers(0, 255, (64, 100, 100, 3), np.uint8)
            writer.write(tfr.encode_example({"steps/image": list(map(png_of, pictures))}))
    script = """
        import sys, tfrfast as tfr
        def anonymous_mb():
            for line in open("/proc/self/status"):
                if line.startswith("RssAnon"):
                    return int(line.split()[1]) / 1024
        windows = {"steps/image": tfr.Window(before=7)}
        steps = tfr.Steps(sys.argv[1], along="steps/", index="memory", windows=windows)
        image = tfr.Image((16, 16), crop="random")
        before = anonymous_mb()
        for _ in tfr.Loader(steps, 256, features={"steps/image": image}, threads=2, seed=1):
            pass
        print(anonymous_mb() - before)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 50
