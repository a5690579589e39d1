"""Features drawn from several, and steps kept by tables of ranges."""

from __future__ import annotations

import json
import os
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from step_choices import COUNT, FEATURES, choosing, drawn, row_of, write_choices
from tfrfast.loading.records import read_step


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_choices(tmp_path_factory.mktemp("choices") / "a.tfrecord")


def test_a_feature_is_drawn_by_seed_epoch_and_step(path: str) -> None:
    steps = choosing(path)
    loader = tfr.Loader(steps, 9, features=FEATURES, seed=1, threads=3)
    seen = []
    for epoch in range(3):
        for batch in loader:
            rows = zip(batch["steps/n"].tolist(), batch["camera"], batch["text"], strict=True)
            for step, camera, text in rows:
                assert (camera, text) == row_of(epoch, step)
                seen.append((epoch, step, text))
    assert len(seen) == 3 * COUNT
    assert len({text for _, step, text in seen if step == 7}) > 1
    # No epoch: the first one.
    for step, record in enumerate(steps):
        batch = tfr.parse_example([record], FEATURES)
        assert (batch["camera"][0], batch["text"][0]) == row_of(0, step)
        names = tfr.infer_features([record])
        assert sorted(names) == ["camera", "meta/file", "meta/folder", "steps/n", "text"]
    assert steps[[5]].tolist() == [steps[5]]
    again = pickle.loads(pickle.dumps(steps))
    assert again[5] == steps[5]
    assert again._fingerprint == steps._fingerprint
    other = tfr.OneOf("steps/camera_0", "steps/camera_1", seed=6)
    assert choosing(path, camera=other)._fingerprint != steps._fingerprint


def test_only_the_drawn_feature_is_read(tmp_path: Path) -> None:
    """A damaged part of the other camera is never met."""
    path = write_choices(tmp_path / "a.tfrecord")
    steps = choosing(path)
    assert len(steps) == COUNT
    plain = tfr.Steps(path, along="steps/")
    content = Path(path).read_bytes()
    with open(path, "r+b") as file:
        file.seek(content.index(b"0:30" * 99))
        file.write(b"x")
    with pytest.raises((tfr.CorruptRecordError, tfr.StaleIndexError)):
        plain[30]
    outcomes = set()
    for epoch in range(6):
        meets = drawn(5, epoch, 30, 2) == 0
        outcomes.add(meets)
        if meets:
            with pytest.raises((tfr.CorruptRecordError, tfr.StaleIndexError)):
                steps._core.read([30], epoch)
        else:
            assert len(steps._core.read([30], epoch)) == 1
    assert outcomes == {True, False}


def test_adapters_tell_padding_from_damage_that_only_one_epoch_meets(tmp_path: Path) -> None:
    path = write_choices(tmp_path / "a.tfrecord")
    choosing(path)  # makes the step file
    content, facts = Path(path).read_bytes(), os.stat(path)
    with open(path, "r+b") as file:
        for step in range(30, COUNT):
            file.seek(content.index(b"0:%d" % step * 99))
            file.write(b"x")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    steps = choosing(tfr.Reader(path, on_corruption="skip"))
    loader = tfr.Loader(steps, 32, features=FEATURES, remainder="pad")
    for _ in range(3):
        epoch = loader.epoch
        for step, batch in enumerate(loader):
            read = read_step(loader.reader, loader.features, loader.plan, epoch, step)
            assert read.indices.tolist() == batch.indices.tolist()
            assert read.valid.tolist() == batch.valid.tolist()


@pytest.mark.parametrize(
    "batching", [tfr.ByTokens(9, lengths="text"), tfr.Packed({"text": 9}, rows=1)]
)
def test_lengths_that_each_epoch_draws_anew_are_not_counted(path: str, batching: Any) -> None:
    steps = choosing(path)
    for source in (steps, tfr.Mixture({"a": (steps, 1), "b": (steps, 1)})):
        with pytest.raises(ValueError, match="'text' is drawn from several in each epoch"):
            tfr.Loader(source, batching, features={"text": tfr.VarLen("int64")})


def test_choices_take_windows_later_steps_and_substitutes(tmp_path: Path) -> None:
    path = write_choices(tmp_path / "a.tfrecord", missing=1)
    with pytest.raises(ValueError, match="'steps/camera_1' is not a feature of the steps"):
        choosing(path)
    path = write_choices(tmp_path / "b.tfrecord")
    window = tfr.Window(before=1)
    steps = tfr.Steps(
        path,
        along="steps/",
        windows={
            "camera": tfr.OneOf("steps/camera_0", "goal"),
            "steps/camera_0": window,
            "goal": tfr.Later("steps/camera_1", seed=1, max_steps=1),
        },
    )
    for step in range(1, 40):
        batch = tfr.parse_example([steps[step]], {"camera": tfr.VarLen("bytes")})
        later = b"1:%d" % min(step + 1, 39) * 99
        both = [b"0:%d" % each * 99 for each in (step - 1, step)]
        assert batch["camera"][0].tolist() == (both if drawn(0, 0, step, 2) == 0 else [later])
        names = tfr.infer_features([steps[step]])
        assert not {"goal", "steps/camera_0", "steps/camera_0/valid"} & names.keys()


def test_names_that_do_not_exist_are_listed_with_the_nearest(path: str) -> None:
    for windows, message in (
        ({"steps/camera1": tfr.Window()}, "Did you mean 'steps/camera_1'"),
        ({"x": tfr.Later("camera_0", seed=1)}, "Did you mean 'steps/camera_0'"),
        ({"x": tfr.OneOf("steps/n", "steps/text0")}, "Did you mean 'steps/text_0'"),
        ({"zzz": tfr.Window()}, "The steps have 'steps/camera_0', 'steps/camera_1', 'steps/n'"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            tfr.Steps(path, along="steps/", windows=windows)
    with pytest.raises(ValueError, match="Did you mean 'steps/n'"):
        tfr.Steps(path, along="steps/", rename={"step/n": "n"})
    for along, meant in (
        ("step/", "Did you mean 'steps/'"),
        (["steps/m"], "Did you mean 'steps/n'"),
        ("observation/", "The records have 'meta/', 'steps/'."),
    ):
        with pytest.raises(ValueError, match="No record has any step") as refused:
            tfr.Steps(path, along=along, index="memory")
        assert meant in str(refused.value)
    camera = tfr.OneOf("steps/camera_0", "steps/camera_1")
    for windows, message in (
        ({"x": tfr.OneOf("steps/n", "steps/text_0")}, "different kinds, int64 and string"),
        ({"x": camera, "steps/camera_0": tfr.Window(before=1)}, "different windows"),
        (
            {
                "x": camera,
                "steps/camera_0": tfr.Window(before=1),
                "steps/camera_1": tfr.Window(before=1, pad="zeros"),
            },
            "different windows",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            tfr.Steps(path, along="steps/", windows=windows)
    nothing = tfr.keep_ranges({}, names=["meta/file"])
    with pytest.warns(UserWarning, match=r"only= keeps none of the 100 steps\."):
        assert len(tfr.Steps(path, along="steps/", only=nothing)) == 0
    for wrong in ((), ("a",), ("a", "a")):
        with pytest.raises(ValueError, match="two or more"):
            tfr.OneOf(*wrong)


def test_steps_are_kept_by_ranges_and_by_recipes(path: str, tmp_path: Path) -> None:
    ranges = {
        "folder 0--file_success.h5": [[3, 5], [38, 60]],
        "folder 2--file_success.h5": [[0, 2]],
        "folder 9--file_success.h5": [[0, 99]],
    }
    file = tmp_path / "keep_ranges.json"
    file.write_text(json.dumps(ranges))
    names = ("meta/folder", "meta/file")
    expected = [3, 4, 38, 39, 43, 44]
    for given in (file, ranges):
        only = tfr.keep_ranges(given, names=names)
        steps = tfr.Steps(path, along="steps/", only=only)
        assert steps.only is not None
        assert steps.only.tolist() == expected
        left = tfr.Steps(
            path,
            along="steps/",
            windows={"steps/n": tfr.Window(before=2, pad=None)},
            only=tfr.keep_ranges(given, names=names),
        )
        numbers = tfr.parse_example(left[:], {"steps/n": tfr.FixedLen((3,), "int64")})["steps/n"]
        assert numbers[:, -1].tolist() == [3, 4, 38, 39]
    recipes = {
        "told": (lambda batch: batch["steps/text_0"] != b"", [s for s in range(COUNT) if s % 3]),
        "successful": (
            lambda batch: np.array([b"success" in each for each in batch["meta/file"].tolist()]),
            [*range(40), *range(43, COUNT)],
        ),
    }
    for only, kept in recipes.values():
        chosen = tfr.Steps(path, along="steps/", only=only).only
        assert chosen is not None
        assert chosen.tolist() == kept


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([], "holds ranges by episode, not \\[\\]"),
        ({"e": 3}, "episode 'e' has 3 where a range stands"),
        ({"e": "x"}, "'x' where"),
        ({"e": [1, 2, 3, 4]}, "has 1 where"),
        ({"e": [[0, 1], [0.9, 2.9]]}, r"\[0.9, 2.9\] where"),
        ({"e": [[0, True]]}, r"\[0, True\] where"),
        ({"e": [[0, 1, 2]]}, r"\[0, 1, 2\] where"),
    ],
)
def test_ranges_are_pairs_of_integers(table: Any, message: str, tmp_path: Path) -> None:
    file = tmp_path / "keep.json"
    file.write_text(json.dumps(table))
    with pytest.raises(ValueError, match=rf"keep\.json'.*{message}"):
        tfr.keep_ranges(file)
    with pytest.raises(TypeError, match="a list of features"):
        tfr.keep_ranges({}, names="meta/file")
