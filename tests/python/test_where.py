"""From a step to its records, and back: `Plan.find` and `tfrfast where`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from cli_files import run_shown, write_examples
from mixed_files import mixture_of, write_sets

COUNT = 20


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    return write_examples(tmp_path / "data")


@pytest.mark.parametrize("remainder", ["keep", "drop", "pad"])
@pytest.mark.parametrize("world", [1, 3])
@pytest.mark.parametrize(
    ("order", "batching"),
    [
        (tfr.Shuffle(seed=3), 4),
        (tfr.InOrder(), 7),
        (tfr.BlockShuffle(seed=1, block_records=5, window_blocks=2), 3),
        (tfr.Weighted([1, 5] * 10, length=50), 4),
        (tfr.Shuffle(seed=3, indices=[1, 4, 9]), 2),
        (tfr.Shuffle(seed=3), tfr.ByTokens(30, lengths=[5, 9] * 10)),
        (tfr.Shuffle(seed=3), tfr.Packed(30, rows=2, lengths=[5, 9] * 10)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_find_is_the_inverse_of_the_plan(
    order: Any, batching: Any, world: int, remainder: Any
) -> None:
    def plan(rank: int) -> tfr.Plan:
        share = {"rank": rank, "world": world, "remainder": remainder}
        return tfr.Plan(order, batching, num_records=COUNT, **share)  # type: ignore[arg-type]

    expected: dict[int, list[tuple[int, int, int]]] = {number: [] for number in range(COUNT)}
    for rank in range(world):
        for step in range(plan(rank).steps):
            records, real = plan(rank).rows(2, step)
            for row, (number, is_real) in enumerate(zip(records.tolist(), real, strict=True)):
                if is_real:
                    expected[number].append((step, rank, row))
    for number in range(COUNT):
        assert plan(world - 1).find(number, 2) == sorted(expected[number])
    with pytest.raises(ValueError, match="record"):
        plan(0).find(COUNT, 2)


def test_a_record_of_a_mixture_is_found(tmp_path: Path) -> None:
    mixture = mixture_of(write_sets(tmp_path))
    plan = tfr.Plan(mixture, 8)
    record = int(plan.indices(1, 3)[5])
    assert (3, 0, 5) in plan.find(record, 1)


def rows_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    status, shown, error = run_shown(capsys, "where", *arguments, "--json")
    assert (status, error) == (0, "")
    found: list[dict[str, Any]] = json.loads(shown)
    return found


def test_where_a_record_is(shards: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    reader = tfr.Reader(shards)
    for row in rows_of(capsys, *shards, "--record", 13, "--record", "-20"):
        place = reader.locate(row["record"])
        assert (row["byte"], row["bytes"]) == (place.offset, place.length)
        assert row["path"] == shards[place.shard]
        data = Path(row["path"]).read_bytes()[row["byte"] + 12 :][: row["bytes"]]
        assert data == reader[row["record"]] == tfr.Reader(row["path"])[row["number"]]
    tfr.build_keys(shards, "label")
    assert [row["record"] for row in rows_of(capsys, *shards, "--by", "label", "--key", 15)] == [15]
    status, shown, _ = run_shown(capsys, "where", *shards, "--by", "label", "--key", 99)
    assert (status, shown) == (0, "No record has this key.\n")
    status, shown, _ = run_shown(capsys, "where", *shards, "--record", 13)
    assert shards[1] in shown
    for number in (-len(reader) - 1, len(reader)):
        status, shown, error = run_shown(capsys, "where", *shards, "--record", number)
        assert (status, shown) == (2, "")
        assert f"Record {number} does not exist" in error


def test_where_the_records_of_a_step_are(
    shards: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def loader(rank: int) -> tfr.Loader:
        return tfr.Loader(shards, 4, seed=9, rank=rank, world=2)

    def shown(*arguments: object) -> list[int]:
        return [row["record"] for row in rows_of(capsys, *shards, "--batch-size", 4, *arguments)]

    of_run = [[batch.indices.tolist() for batch in loader(rank)] for rank in range(2)]
    run = "--seed", 9, "--world", 2
    for rank in range(2):
        for step, records in enumerate(of_run[rank]):
            assert shown(*run, "--rank", rank, "--step", step) == records
    stopped = loader(0)
    next(iter(stopped))
    state = tmp_path / "state.json"
    state.write_text(json.dumps(stopped.state_dict()))
    for rank in range(2):
        later = shown("--state", state, "--world", 2, "--rank", rank, "--step", 1)
        assert later == of_run[rank][2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--key", "x"], "--by"),
        (["--record", 3, "--seed", 1], "--step"),
        (["--record", 99], "99"),
        (["--step", 99], "99"),
        (["--step", 0, "--state", "{state}", "--seed", 1], "leave --seed"),
        (["--step", 0, "--state", "{other}"], "12 records"),
        (["--step", 0, "--state", "{weighted}"], "another order"),
        (["--step", 0, "--state", "{none}"], "not a state"),
        (["--step", 0, "--state", "{text}"], "not JSON"),
        (["--key", "x", "--by", "label"], "integers"),
    ],
)
def test_what_makes_no_sense_is_said(
    shards: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[object],
    said: str,
) -> None:
    tfr.build_keys(shards, "label")
    orders = {
        "state": tfr.Plan(tfr.Shuffle(seed=1), 4, num_records=20).order_text,
        "other": tfr.Plan(tfr.Shuffle(seed=1), 4, num_records=12).order_text,
        "weighted": tfr.Plan(tfr.Weighted([1] * 20), 4, num_records=20).order_text,
    }
    files = {"none": "[]", "text": "state"}
    files |= {
        name: json.dumps({"order": text, "epoch": 0, "position": 0})
        for name, text in orders.items()
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    given = [str(each).format(**{name: tmp_path / name for name in files}) for each in arguments]
    status, _, error = run_shown(capsys, "where", *shards, *given)
    assert status == 2
    assert said in error
