"""Steps of episodes: each step has exactly its values in the episode's record."""

import os
import pickle
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from other_users import STRANGER, as_user, needs_root, open_folder
from wire_examples import byte_strings, entry, example, field, floats, ints

FEATURES = {
    "steps/action": tfr.FixedLen((7,), "float32"),
    "steps/image": tfr.FixedLen((), "bytes"),
    "steps/is_first": tfr.FixedLen((), "int64"),
    "steps/reward": tfr.FixedLen((), "float32"),
    "steps/text": tfr.FixedLen((), "bytes"),
    "steps/tick": tfr.FixedLen((), "int64"),
    "name": tfr.FixedLen((), "bytes"),
}


def episode(number: int, steps: int) -> dict[str, Any]:
    rng = np.random.default_rng(number)
    return {
        "steps/action": rng.random((steps, 7), np.float32).reshape(-1),
        "steps/image": [rng.bytes(int(rng.integers(500, 2500))) for _ in range(steps)],
        "steps/is_first": [int(i == 0) for i in range(steps)],
        "steps/reward": rng.random(steps, np.float32),
        "steps/text": [b"pick up %d" % number] * steps,
        # strings of one to ten bytes
        "steps/tick": [int(each) for each in rng.integers(-5, 1 << 40, steps)],
        "name": [b"episode %d" % number],
    }


LENGTHS = [5, 0, 130, 1, 17, 64, 3]


def write(folder: Path, lengths: Sequence[int] = LENGTHS, **options: Any) -> list[str]:
    """Two shards."""
    paths = [str(folder / f"data-{shard}") for shard in range(2)]
    for shard, path in enumerate(paths):
        with tfr.Writer(path, **options) as writer:
            for number in range(shard, len(lengths), 2):
                made = episode(number, lengths[number])
                writer.write(tfr.encode_example({k: v for k, v in made.items() if len(v)}))
    return paths


def in_order(lengths: Sequence[int] = LENGTHS) -> list[tuple[int, int]]:
    """Returns the episode, and the number in the episode, of each step of the shards."""
    numbers = [*range(0, len(lengths), 2), *range(1, len(lengths), 2)]
    return [(number, step) for number in numbers for step in range(lengths[number])]


def expected(number: int, step: int, steps: int) -> dict[str, Any]:
    made = episode(number, steps)
    return {
        name: value[0]
        if name == "name"
        else np.reshape(np.asarray(value, object), (steps, -1))[step]
        for name, value in made.items()
    }


def check(records: Any, numbers: Sequence[tuple[int, int]]) -> None:
    batch = tfr.parse_example(records, FEATURES)
    for row, (number, step) in enumerate(numbers):
        for name, value in expected(number, step, LENGTHS[number]).items():
            found = batch[name][row]
            assert np.array_equal(np.atleast_1d(np.asarray(found, object)), np.atleast_1d(value)), (
                name
            )


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_each_step_has_its_values_and_its_episodes(
    tmp_path: Path, io: Any, compression: Any
) -> None:
    paths = write(tmp_path, compression=compression)
    steps = tfr.Steps(paths, along="steps/", io=io)
    wanted = in_order()
    assert len(steps) == len(wanted)
    assert ("whole episode is inflated" in steps._found_features()) == bool(compression)
    check(steps.read(np.arange(len(steps))), wanted)
    some = [219, 0, 7, 7, 100]
    check(steps[some], [wanted[each] for each in some])
    assert steps[some][0] == steps[219] == list(steps)[219]
    assert [bytes(each) for each in steps[3:9]] == [steps[each] for each in range(3, 9)]
    with pytest.raises(IndexError, match="Record 220 does not exist"):
        steps[220]


def test_a_step_knows_its_place(tmp_path: Path) -> None:
    steps = tfr.Steps(write(tmp_path), along="steps/")
    assert steps.locate(5 + 129) == (0, 1, 129)
    assert steps.locate(-1) == (1, 6, 63)
    assert steps.episodes.lengths.tolist() == [5, 130, 17, 3, 0, 1, 64]
    assert steps.episodes.first_steps.tolist() == [0, 5, 135, 152, 155, 155, 156]
    assert repr(steps) == "Steps(7 episodes, 220 steps)"
    assert "steps/action: 7 float a step, 28 bytes" in steps._found_features()


def test_the_file_is_made_once_and_found_again(tmp_path: Path) -> None:
    paths = write(tmp_path)
    made = tfr.build_steps(paths, along="steps/", executor=ProcessPoolExecutor(2))
    before = os.stat(made)
    assert len(tfr.Steps(paths, along="steps/", index="require")) == 220
    assert os.path.samestat(os.stat(made), before)
    with pytest.raises(FileNotFoundError):
        tfr.Steps(paths, along=["steps/action", "steps/image"], index="require")
    again = pickle.loads(pickle.dumps(tfr.Steps(paths, along="steps/")))
    check(again[:3], in_order()[:3])


def test_the_file_may_lie_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = tfr.build_steps(write(tmp_path), along="steps/", folder="")
    assert made == os.path.basename(made)
    assert os.path.getsize(made) > 0


@needs_root
def test_a_folder_that_cannot_be_written_is_said_before_the_work() -> None:
    with open_folder() as folder:
        data = folder / "data"
        data.mkdir()
        paths = write(data)
        (data.parent / "data.tfrfast").chmod(0o755)

        def look() -> str:
            with pytest.raises(PermissionError, match=r"Steps\(index_folder=") as caught:
                tfr.Steps(paths, along="steps/")
            assert len(tfr.Steps(paths, along="steps/", index="memory")) == sum(LENGTHS)
            return str(caught.value.filename)

        assert as_user(STRANGER, look).startswith(str(folder))
        assert not [name for name in os.listdir(folder / "data") if "steps" in name]


def test_nothing_is_kept_in_memory_alone(tmp_path: Path) -> None:
    paths = write(tmp_path)
    steps = tfr.Steps(paths, along="steps/", index="memory")
    check(steps[200:], in_order()[200:])
    assert {each.name for each in tmp_path.iterdir()} == {"data-0", "data-1"}


def window_of(values: np.ndarray, step: int, offsets: Sequence[int]) -> np.ndarray:
    return values[np.clip(step + np.asarray(offsets), 0, len(values) - 1)]


def test_windows_hold_their_steps_within_the_episode(tmp_path: Path, io: Any) -> None:
    windows = {
        "steps/action": tfr.Window(before=1, after=4),
        "steps/image": tfr.Window(before=2, stride=3),
        "steps/text": tfr.Window(after=1, pad="zeros"),
        "steps/reward": tfr.Window(before=2, pad="zeros"),
    }
    steps = tfr.Steps(write(tmp_path), along="steps/", windows=windows, io=io)
    features = {
        **FEATURES,
        "steps/action": tfr.FixedLen((6, 7), "float32"),
        "steps/action/valid": tfr.FixedLen((6,), "int64"),
        "steps/image": tfr.FixedLen((3,), "bytes"),
        "steps/text": tfr.FixedLen((2,), "bytes"),
        "steps/text/valid": tfr.FixedLen((2,), "int64"),
        "steps/reward": tfr.FixedLen((3,), "float32"),
    }
    wanted = in_order()
    batch = tfr.parse_example(steps.read(range(len(steps))), features)
    for row, (number, step) in enumerate(wanted):
        count = LENGTHS[number]
        made = episode(number, count)
        actions = made["steps/action"].reshape(count, 7)
        assert np.array_equal(batch["steps/action"][row], window_of(actions, step, range(-1, 5)))
        real = [int(0 <= step + j < count) for j in range(-1, 5)]
        assert batch["steps/action/valid"][row].tolist() == real
        images = np.array(made["steps/image"], object)
        assert list(batch["steps/image"][row]) == list(window_of(images, step, [-6, -3, 0]))
        has_next = step + 1 < count
        assert list(batch["steps/text"][row]) == [
            made["steps/text"][0],
            made["steps/text"][0] * has_next,
        ]
        assert batch["steps/text/valid"][row].tolist() == [1, has_next]
        rewards = [made["steps/reward"][step + j] if step + j >= 0 else 0 for j in (-2, -1, 0)]
        assert batch["steps/reward"][row].tolist() == rewards


def test_steps_that_a_window_lacks_can_be_left_out(tmp_path: Path) -> None:
    window = {"steps/action": tfr.Window(before=1, after=2, stride=2, pad=None)}
    steps = tfr.Steps(write(tmp_path), along="steps/", windows=window)
    kept = [(n, step) for n, step in in_order() if 2 <= step < LENGTHS[n] - 4]
    assert len(steps) == len(kept)
    features = {"name": FEATURES["name"], "steps/tick": FEATURES["steps/tick"]}
    batch = tfr.parse_example(steps.read(range(len(steps))), features)
    for row, (number, step) in enumerate(kept):
        assert batch["steps/tick"][row] == episode(number, LENGTHS[number])["steps/tick"][step]
    with pytest.raises(ValueError, match="'steps/jaw', which is not a feature of the steps"):
        tfr.Steps(steps.records, along="steps/", windows={"steps/jaw": tfr.Window()})


def damage(path: str, what: bytes) -> None:
    data = Path(path).read_bytes()
    at = data.index(what)
    times = os.stat(path)
    Path(path).write_bytes(data[: at + 1] + bytes([data[at + 1] ^ 1]) + data[at + 2 :])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_a_damaged_part_is_an_error_where_it_is_needed(tmp_path: Path, io: Any) -> None:
    paths = write(tmp_path)
    for mode in ("raise", "skip"):
        steps = tfr.Steps(paths, along="steps/", io=io, on_corruption=mode, index="memory")
        if mode == "raise":
            image = episode(2, 130)["steps/image"][77]
            damage(paths[0], image[100:140])
            broken = 5 + 77
            with pytest.raises(tfr.RecordError, match="'steps/image' at byte"):
                steps[broken]
            check(steps[broken + 1 : broken + 3], in_order()[broken + 1 : broken + 3])
        else:
            # The whole record was left out when its steps were found.
            assert len(steps) == 90
            assert [each.records for each in steps.skipped] == [1]


def test_a_damaged_first_record_is_left_out(tmp_path: Path) -> None:
    paths = write(tmp_path)
    first = tfr.Reader(paths)[0]
    damage(paths[0], first[-8:])
    with pytest.raises(tfr.CorruptRecordError):
        tfr.build_steps(paths, along="steps/")
    steps = tfr.Steps(paths, along="steps/", on_corruption="skip")
    assert steps.episodes.lengths[0] == 0
    check(steps[:], [step for step in in_order() if step[0] != in_order()[0][0]])


def test_steps_damaged_since_are_skipped(tmp_path: Path, io: Any) -> None:
    paths = write(tmp_path)
    tfr.build_steps(paths, along="steps/")
    damage(paths[0], episode(2, 130)["steps/image"][77][100:140])
    steps = tfr.Steps(paths, along="steps/", io=io, on_corruption="skip")
    wanted = in_order()
    check(steps.read([81, 82, 83]), [wanted[81], wanted[83]])
    assert [each.path for each in steps.skipped] == [paths[0]]
    check(steps.read(range(220)), [*wanted[:82], *wanted[83:]])
    with pytest.raises(tfr.RecordError, match="Corrupt step: .* in record 1 of"):
        steps[82]


def test_a_file_that_was_changed_since_is_an_error(tmp_path: Path) -> None:
    paths = write(tmp_path)
    steps = tfr.Steps(paths, along="steps/", on_corruption="skip")
    descriptor = os.open(paths[0], os.O_RDWR)
    at = Path(paths[0]).read_bytes().index(episode(2, 130)["steps/image"][77])
    os.pwrite(descriptor, b"?!", at + 10)
    os.close(descriptor)
    for read in (lambda: steps[82], lambda: steps.read([81, 82, 83])):
        with pytest.raises(tfr.RecordError, match="The file was changed since"):
            read()


def test_a_step_that_does_not_fit_the_features_is_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with tfr.Writer(tmp_path / name) as writer:
            writer.write_batch([tfr.encode_example({"steps/a": [1, 2, 3]})] * 2)
    steps = tfr.Steps(str(tmp_path / "[ab]"), along="steps/")
    features = {"steps/a": tfr.FixedLen((2,), "int64")}
    joined = tfr.Mixture({"records": (str(tmp_path / "a"), 1), "steps": (steps, 1)}).reader
    for source, number in ((steps, 11), (joined, 13)):
        order = tfr.InOrder(indices=[number])
        with pytest.raises(tfr.FeatureError) as caught:
            next(iter(tfr.Loader(source, 1, order=order, features=features)))
        path = str(tmp_path / "b")
        assert f"Step 2 of record 1 of '{path}' (number {number} of all)." in str(caught.value)
        assert (caught.value.path, caught.value.record) == (path, 1)


def test_features_of_other_lengths_are_named(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    with tfr.Writer(path) as writer:
        writer.write(tfr.encode_example({"steps/a": [1, 2, 3], "steps/b": [1, 2, 3, 4]}))
    with pytest.raises(tfr.FeatureError, match=r"Record 0 of .* has 4 values in feature 'steps/b'"):
        tfr.Steps(path, along="steps/")
    with pytest.raises(ValueError, match="No record has any step"):
        tfr.build_steps(path, along="episode/", folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()
    ok = tfr.Steps(path, along="steps/a", index="memory")
    parsed = tfr.parse_example(
        ok[1:2], {"steps/a": FEATURES["steps/tick"], "steps/b": tfr.VarLen("int64")}
    )
    assert parsed["steps/a"].tolist() == [2]
    with pytest.raises(tfr.FeatureError, match="has 3 values in feature 'steps/a'"):
        tfr.Steps(path, along={"steps/a": 2})


def test_what_needs_whole_records_says_so(tmp_path: Path) -> None:
    steps = tfr.Steps(write(tmp_path), along="steps/")
    for use in (
        lambda: tfr.copy(steps, [0], str(tmp_path / "out")),
        lambda: tfr.build_keys(steps, "name"),
        lambda: steps.by_key("name"),
    ):
        with pytest.raises(TypeError, match="whole|not steps"):
            use()


def test_an_index_takes_few_bytes_a_step(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = str(tmp_path / "data")

    def size_of(cameras: int) -> float:
        with tfr.Writer(path, overwrite=True) as writer:
            for _ in range(20):
                sizes = np.clip(rng.normal(600, 60, (cameras, 200)), 100, None).astype(int)
                images = {
                    f"steps/image{camera}": [bytes(size) for size in sizes[camera]]
                    for camera in range(cameras)
                }
                writer.write(
                    tfr.encode_example({"steps/action": rng.random(2000, np.float32), **images})
                )
        made = tfr.build_steps(path, along="steps/")
        return os.path.getsize(made) / 4000

    one, two = size_of(1), size_of(2)
    assert one < 8
    assert two - one < 7


def test_a_mixture_of_steps_and_of_records(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    one = tfr.Steps(write(tmp_path), along="steps/")
    window = {"steps/action": tfr.Window(pad="zeros")}
    two = tfr.Steps(write(tmp_path / "other", [9, 4]), along="steps/", windows=window)
    episodes = tfr.Reader(str(tmp_path / "data-0"))
    whole = [("one", one, 2), ("two", two, 1), ("episodes", episodes, 1)]
    mixture = tfr.Mixture({name: (reader, weight) for name, reader, weight in whole}, seed=4)
    reader = pickle.loads(pickle.dumps(mixture.reader))
    assert len(reader) == 220 + 13 + 4
    assert list(reader) == [*one, *two, *episodes]
    some = [236, 3, 221, 3, 100]
    assert [bytes(each) for each in reader[some]] == [reader[each] for each in some]
    seen: dict[int, int] = {}
    for batch in tfr.Loader(mixture, 8, threads=2):
        for index, record in zip(batch.indices.tolist(), batch, strict=True):
            assert bytes(record) == reader[index]
            seen[index] = seen.get(index, 0) + 1
        assert (
            batch.sources.tolist() == np.searchsorted([220, 233], batch.indices, "right").tolist()
        )
    with pytest.raises(IndexError):
        reader[237]
    with pytest.raises(TypeError, match="whole records"):
        _ = reader.lengths


def test_features_get_other_names_and_values_where_they_are_absent(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    with tfr.Writer(path) as writer:
        writer.write(tfr.encode_example({"steps/a": [1, 2], "steps/r": [0.5, 1.5]}))
        writer.write(tfr.encode_example({"steps/a": [3]}))
    options: dict[str, Any] = {
        "rename": {"steps/a": "steps/action"},
        "absent": {
            "steps/r": [-1.0] * 3,
            "steps/r/valid": [5, 6, 7],
            "steps/camera": b"none",
            "steps/long": [b"x" * 300] * 2,
        },
        "windows": {
            "steps/action": tfr.Window(after=1),
            "steps/r": tfr.Window(after=2),
            "goal": tfr.Later("steps/r", seed=1, min_steps=0, max_steps=0),
        },
    }
    steps = pickle.loads(pickle.dumps(tfr.Steps(path, along="steps/", **options)))
    features = {
        "steps/action": tfr.FixedLen((2,), "int64"),
        "steps/action/valid": tfr.FixedLen((2,), "int64"),
        "steps/r": tfr.FixedLen((3,), "float32"),
        "steps/r/valid": tfr.FixedLen((3,), "int64"),
        "goal": tfr.VarLen("float32"),
        "goal/valid": tfr.FixedLen((), "int64"),
        "steps/camera": tfr.FixedLen((), "bytes"),
        "steps/long": tfr.FixedLen((2,), "bytes"),
    }
    batch = tfr.parse_example(steps[:], features)
    assert batch["steps/action"].tolist() == [[1, 2], [2, 2], [3, 3]]
    assert batch["steps/r"].tolist() == [[0.5, 1.5, 1.5], [1.5] * 3, [-1.0] * 3]
    assert batch["steps/r/valid"].tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert (batch["goal"].tolist(), batch["goal/valid"].tolist()) == ([[0.5], [1.5], []], [1, 1, 0])
    assert list(batch["steps/camera"]) == [b"none"] * 3
    assert [bytes(each) for each in batch["steps/long"][2]] == [b"x" * 300] * 2
    assert steps._fingerprint != tfr.Steps(path, along="steps/")._fingerprint
    for rename, says in (
        ({"steps/x": "steps/y"}, "'steps/x' is to be renamed"),
        ({"steps/a": "steps/r"}, "Both 'steps/a' and 'steps/r' would be called 'steps/r'"),
    ):
        with pytest.raises(ValueError, match=says):
            tfr.Steps(path, along="steps/", rename=rename)


@pytest.mark.parametrize(
    "lengths",
    [[[5, 2], [2]], [[2], [5, 2]], [[2], [5]], [[2, 2], [5]], [[0], [2]], [[2], [0, 0], [1]]],
    ids=str,
)
@pytest.mark.parametrize("of", [ints, floats, byte_strings])
def test_lists_of_features_of_any_length(tmp_path: Path, lengths: list[list[int]], of: Any) -> None:
    make: Any = (lambda n: b"%d" % n) if of is byte_strings else float if of is floats else int
    values = [[[make(n) for n in range(length)] for length in episode] for episode in lengths]
    with tfr.Writer(tmp_path / "x") as writer:
        for episode in values:
            steps = b"".join(field(1, of(*step)) for step in episode)
            writer.write(field(2, entry(b"a", steps)))
    steps = tfr.Steps(tmp_path / "x", along=["a"])
    kind = {ints: "int64", floats: "float32", byte_strings: "bytes"}[of]
    found = tfr.parse_example(steps[:], {"a": tfr.VarLen(kind)})["a"].tolist()
    assert found == [step for episode in values for step in episode]


def test_a_list_with_the_name_of_a_feature_of_the_context_is_renamed(tmp_path: Path) -> None:
    with tfr.Writer(tmp_path / "x") as writer:
        for number in range(3):
            lists = entry(b"a", b"".join(field(1, ints(number, step)) for step in range(2)))
            writer.write(example(entry(b"a", ints(100 + number))) + field(2, lists))
    with pytest.raises(tfr.FeatureError, match="both called 'a'.*rename="):
        tfr.Steps(tmp_path / "x", along=["a"])
    steps = tfr.Steps(tmp_path / "x", along=["a"], rename={"a": "b"})
    found = tfr.parse_example(steps[:], "infer")
    assert found["a"].tolist() == [100, 100, 101, 101, 102, 102]
    assert found["b"].tolist() == [[number, step] for number in range(3) for step in range(2)]
    with pytest.raises(ValueError, match="feature 'a' of its own.* another name with rename="):
        tfr.Steps(tmp_path / "x", along=["a"])[:]  # opens the file that is there
