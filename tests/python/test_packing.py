"""Packs: rows of tokens filled with whole records, each once, for any number of ranks."""

from __future__ import annotations

import os
import pickle
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrfast as tfr
from packed_files import ALL, IDS, pieces_in, tokens_of, write_tokens
from quoted_code import ROOT
from record_files import frame, write_shard
from reference_packing import ReferencePacking
from step_files import write_episodes
from tfrecord_model import rested
from wire_examples import entry, field, ints

Rows = list[list[tuple[int, int]]]


def plan_of(lengths: Any, tokens: Any, overlong: Any = "error", **options: Any) -> tfr.Plan:
    order = tfr.Shuffle(options.pop("seed", 0), indices=options.pop("indices", None))
    packs = tfr.Packed(tokens, rows=options.pop("rows", 1), lengths=lengths, overlong=overlong)
    return tfr.Plan(order, packs, num_records=len(lengths), **options)


def rows_of(plan: tfr.Plan, epoch: int, steps: range | None = None) -> Rows:
    rows: Rows = []
    for step in range(plan.steps) if steps is None else steps:
        pieces = iter(plan._core.packed(epoch, step)[:, -1].tolist())
        rows += [
            [(record, next(pieces)) for record in pack.tolist()] for pack in plan.packs(epoch, step)
        ]
    return rows


def log_normal(records: int, median: int, tokens: int) -> Any:
    drawn = np.random.default_rng(0).lognormal(np.log(median), 1, records)
    return drawn.astype(np.int64).clip(1, tokens)


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(0, 90), max_size=80),
    tokens=st.integers(20, 120),
    overlong=st.sampled_from(["cut", "split"]),
    seed=st.integers(0, 2**64 - 1),
    epoch=st.integers(0, 2**64 - 1),
    data=st.data(),
)
def test_packs_are_those_of_the_specification(
    lengths: list[int], tokens: int, overlong: str, seed: int, epoch: int, data: st.DataObject
) -> None:
    chosen = data.draw(st.none() | st.sets(st.integers(0, max(len(lengths) - 1, 0))), "indices")
    indices = None if chosen is None or not lengths else sorted(chosen)
    reference = ReferencePacking([(n,) for n in lengths], (tokens,), overlong, indices)
    expected = reference.epoch(seed, epoch)
    whole = plan_of(lengths, tokens, overlong, seed=seed, indices=indices)
    assert rows_of(whole, epoch) == expected
    came = Counter(piece for row in expected for piece in row)
    pieces = [
        (record, piece)
        for record in (range(len(lengths)) if indices is None else indices)
        for piece in range(
            -(-lengths[record] // tokens) if overlong == "split" else lengths[record] > 0
        )
    ]
    assert came == Counter(pieces)

    world, rows = data.draw(st.integers(1, 4), "world"), data.draw(st.integers(1, 3), "rows")
    remainder: Any = data.draw(st.sampled_from(["keep", "drop", "pad"]), "remainder")
    share = {"seed": seed, "indices": indices, "rows": rows, "remainder": remainder}
    ranks = [plan_of(lengths, tokens, overlong, rank=r, world=world, **share) for r in range(world)]
    stop = data.draw(st.integers(0, ranks[0].steps), "stop")
    dealt = [
        row
        for step in range(stop)
        for rank in ranks
        if step < rank.steps
        for row in rows_of(rank, epoch, range(step, step + 1))
    ]
    position = ranks[0].position_after(stop - 1)
    assert dealt == expected[:position]
    assert rows_of(whole.rest_after(position), epoch) == expected[position:]


def test_packs_of_version_1_are_frozen() -> None:
    lengths = [5, 3, 8, 2, 6, 1, 7, 4]
    for seed, epoch, packs in [
        (0, 0, [[1, 7], [0, 3, 5], [4], [6], [2]]),
        (7, 2**40, [[1, 0], [2], [4, 3], [5, 6], [7]]),
    ]:
        plan = plan_of(lengths, 8, seed=seed)
        assert [plan.indices(epoch, step).tolist() for step in range(plan.steps)] == packs
    split = [[(0, 0)], [(2, 0), (0, 2)], [(1, 0)], [(0, 1)]]
    assert rows_of(plan_of([20, 8, 3], 8, "split"), 0) == split


def test_many_records_are_drawn_in_chunks_and_budgets_together() -> None:
    random = np.random.default_rng(3)
    many = random.integers(1, 9, 70_000)
    expected = ReferencePacking([(int(n),) for n in many], (64,)).epoch(1, 2)
    assert rows_of(plan_of(many, 64), 2) != expected  # another seed
    assert rows_of(plan_of(many, 64, seed=1), 2) == expected

    pairs = random.integers(0, 40, (400, 2))
    packs = tfr.Packed({"inputs": 64, "targets": 90}, rows=1)
    from tfrfast import _native

    packs = packs._copy(_tables=tuple(_native.LengthTable(each) for each in pairs.T.copy()))
    plan = tfr.Plan(tfr.Shuffle(5), packs, num_records=400)
    pair_list = [(int(a), int(b)) for a, b in pairs]
    assert rows_of(plan, 3) == ReferencePacking(pair_list, (64, 90)).epoch(5, 3)


@pytest.mark.parametrize(
    ("median", "tokens", "fill", "meet_again"),
    [
        (200, 2048, 0.999, 0.002),
        (200, 8192, 0.999, 0.01),
        (4000, 32768, 0.998, 0.002),
        (900, 2048, 0.995, 0.01),
    ],
)
def test_packs_are_full_and_records_rarely_meet_again(
    median: int, tokens: int, fill: float, meet_again: float
) -> None:
    plan = plan_of(log_normal(30_000, median, tokens), tokens)
    assert plan.fill.share > fill
    epochs = [rows_of(plan, epoch) for epoch in (0, 1)]
    assert len(epochs[0]) == len(epochs[1]) == plan.positions == plan.fill.packs
    pack = np.empty(30_000, np.int64)
    for number, row in enumerate(epochs[1]):
        pack[[record for record, _ in row]] = number
    pairs = again = 0
    for row in epochs[0]:
        later = np.bincount(pack[[record for record, _ in row]] - pack.min())
        pairs += len(row) * (len(row) - 1)
        again += int((later * (later - 1)).sum())
    assert again / pairs < meet_again


def test_a_plan_holds_no_number_for_each_record() -> None:
    plan = plan_of(log_normal(1_000_000, 200, 2048), 2048)
    assert len(plan._encode()) < 500
    by_tokens = tfr.Plan(tfr.Shuffle(), tfr.ByTokens(9000, [7] * 5000), num_records=5000)
    assert len(by_tokens._encode()) < 500
    copy = pickle.loads(pickle.dumps(plan))
    assert copy == plan
    assert copy.indices(2**40, 5).tolist() == plan.indices(2**40, 5).tolist()


def loaded(loader: Any) -> Counter[tuple[int, int, int]]:
    """Checks all batches of an epoch, and counts their pieces."""
    found: Counter[tuple[int, int, int]] = Counter()
    for batch in loader:
        found += pieces_in(batch.as_dict())
        for k, record in enumerate(batch.indices.tolist()):
            row, column = batch.starts[k]
            assert (
                batch["ids"][row, column]
                == tokens_of(record, SPLIT + 1)[0] + batch.pieces[k] * SPLIT
            )
            if "name" in batch:
                assert batch["name"][k] == b"%d" % record
                assert batch["mask"][row, column] == record + 0.5
                assert batch["more"][k].tolist() == list(range(record % 4))
    return found


SPLIT = 32
LENGTHS = np.random.default_rng(1).integers(0, 70, 300)


@pytest.mark.parametrize("overlong", ["error", "cut", "split"])
def test_a_loader_fills_rows_with_whole_records(tmp_path: Path, overlong: Any) -> None:
    paths = [write_tokens(tmp_path / f"{i}", LENGTHS[i::3], i * 100) for i in range(3)]
    lengths = np.concatenate([LENGTHS[i::3] for i in range(3)])
    tokens = 100 if overlong == "error" else SPLIT
    packs = tfr.Packed(tokens, rows=7, lengths="ids", overlong=overlong)
    loader = tfr.Loader(paths, packs, features=ALL, seed=4)
    pieces = {
        (record, first, min(tokens, length - first))
        for record, length in enumerate(lengths.tolist())
        for first in range(0, length if overlong == "split" else min(length, 1), tokens)
    }
    fill = loader.plan.fill
    assert fill.left_out == (lengths == 0).sum()
    assert (fill.cut + fill.split, fill.pieces) == ((lengths > tokens).sum(), len(pieces))
    for _ in range(2):
        assert loaded(loader) == Counter(pieces)
    resumed = pickle.loads(pickle.dumps(loader))
    assert loaded(resumed) == Counter(pieces)
    for remainder in ("pad", "keep"):
        ranks = [
            tfr.Loader(paths, packs, features=IDS, seed=4, rank=r, world=3, remainder=remainder)
            for r in range(3)
        ]
        found = Counter[tuple[int, int, int]]()
        for rank in ranks:
            found += pieces_in(next(iter(rank)).as_dict())
        for r in range(2):
            rest = tfr.Loader(
                paths, packs, features=IDS, seed=4, rank=r, world=2, remainder=remainder
            )
            rest.load_state_dict(ranks[0].state_dict())
            found += loaded(rest)
        assert found == Counter(pieces)


def test_features_with_lengths_of_their_own_have_budgets(tmp_path: Path) -> None:
    path = write_tokens(tmp_path / "a", LENGTHS % 40)
    packs = tfr.Packed({"ids": 64, "more": 9}, rows=5, keys=("{}_segmentation", "{}_position"))
    loader = tfr.Loader(path, packs, features={"ids": IDS["ids"], "more": ALL["more"]})
    for batch in loader:
        columns = batch.as_dict()
        assert set(columns) == {
            f"{name}{end}" for name in ("ids", "more") for end in ("", "_segmentation", "_position")
        }
        assert batch["more"].shape[1] == 9
        assert batch["ids"].shape[1] == 64
        for k, record in enumerate(batch.indices.tolist()):
            row, ids_at, more_at = batch.starts[k]
            length = int(LENGTHS[record] % 40)
            assert (batch["ids"][row, ids_at : ids_at + length] == tokens_of(record, length)).all()
            more = batch["more"][row, more_at : more_at + record % 4]
            assert more.tolist() == list(range(record % 4))
            segments = batch.segments["more"][row, more_at : more_at + record % 4].tolist()
            assert (
                len({*segments, *batch.segments["ids"][row, ids_at : ids_at + length].tolist()})
                <= 1
            )


def test_damage_leaves_its_place_empty(tmp_path: Path) -> None:
    lengths = np.full(40, 10)
    whole = write_tokens(tmp_path / "a", lengths)
    packs = tfr.Packed(40, rows=10, lengths=lengths)
    (before,) = tfr.Loader(whole, packs, features=IDS)
    data = bytearray(Path(whole).read_bytes())
    at = data.index(tfr.encode_example({"name": b"7"})[-3:])
    data[at + 1] ^= 1
    Path(whole).write_bytes(data)
    rested(Path(whole))
    (after,) = tfr.Loader(whole, packs, features=IDS, on_corruption="skip")
    (lost,) = set(before.indices.tolist()) - set(after.indices.tolist())
    there = before["ids"] // 100_000 == lost
    there &= before.segments > 0
    assert there.sum() == 10
    assert (after.segments == np.where(there, 0, before.segments)).all()
    assert (after["ids"] == np.where(there, 0, before["ids"])).all()


def test_another_length_than_the_counted_one_is_an_error(tmp_path: Path) -> None:
    path = write_tokens(tmp_path / "a", [4, 5, 6])
    wrong = tfr.Packed(9, rows=1, lengths=[4, 5, 7])
    with pytest.raises(ValueError, match="No feature has the counted lengths"):
        tfr.Loader(path, wrong, features=IDS)
    loader = tfr.Loader(path, wrong._copy(_features=(("ids",),)), features=IDS)
    with pytest.raises(tfr.FeatureError, match=r"has 6 values, and 7 were counted\. Record 2 of"):
        list(loader)
    named = tfr.Packed(9, rows=1, lengths=["ids", "more"])
    with pytest.raises(tfr.FeatureError, match="'more': the record has"):
        list(tfr.Loader(path, named, features=ALL))


@pytest.mark.parametrize(
    ("counted", "overlong", "wrong"),
    [
        ([8], "cut", "'ids': the record has 12 values, and 8 were counted"),
        ([8], "split", "'ids': the record has 12 values, and 8 were counted"),
        ([16], "split", "'ids': the record has 12 values, and 16 were counted"),
        ([9], "cut", None),
        ([12], "split", None),
        ([8, 12], "cut", "'ids': the record has 12 values, and 8 were counted"),
        ([12, 8], "cut", "'more': the record has 12 values, and 8 were counted"),
        ([12, 12], "cut", None),
    ],
)
def test_a_full_row_hides_no_other_length(
    tmp_path: Path, counted: list[int], overlong: Any, wrong: str | None
) -> None:
    from tfrfast import _native

    path = write_shard(tmp_path / "a", [tfr.encode_example({"ids": [7] * 12, "more": [8] * 12})])
    names = ("ids", "more")[: len(counted)]
    packs = tfr.Packed(dict.fromkeys(names, 8), rows=1, overlong=overlong)
    packs = packs._copy(_tables=tuple(_native.LengthTable(np.array([n])) for n in counted))
    loader = tfr.Loader(path, packs, features={name: tfr.VarLen("int64") for name in names})
    if wrong is not None:
        with pytest.raises(tfr.FeatureError, match=wrong):
            list(loader)
    else:
        tokens = [int((batch["ids"] != 0).sum()) for batch in loader]
        assert sorted(tokens) == ([8] if overlong == "cut" else [4, 8])


def test_records_cannot_give_the_facts_of_packs(tmp_path: Path) -> None:
    """Whichever path decodes them, and in whichever order the entries come."""
    facts = ["\0segments 0", "\0positions 0", "\0starts"]
    examples = []
    for names in ([*facts, "ids"], ["ids", *facts]):
        examples.append(b"".join(tfr.encode_example({name: [7] * 9}) for name in names))  # unusual
        entries = [
            tfr.encode_example({name: [7] * 9})[2:] for name in names
        ]  # without features' tag
        examples.append(b"\x0a" + bytes([len(b"".join(entries))]) + b"".join(entries))
    path = write_shard(tmp_path / "a", examples)
    (batch,) = tfr.Loader(path, tfr.Packed(9, rows=4, lengths="ids"), features=IDS)
    assert (batch["ids"] == 7).all()
    assert (batch.segments == 1).all()
    assert (batch.positions == np.arange(9)).all()
    assert batch.starts.tolist() == [[row, 0] for row in range(4)]
    more = write_shard(
        tmp_path / "b", [tfr.encode_example({"ids": [7], facts[0]: [7] * 1_000_000})]
    )
    (batch,) = tfr.Loader(more, tfr.Packed(1, rows=1, lengths="ids"), features=IDS)
    assert batch.segments.tolist() == [[1]]


def test_lengths_are_counted_once_and_kept(tmp_path: Path, monkeypatch: Any) -> None:
    path = write_tokens(tmp_path / "data", LENGTHS)
    packs = tfr.Packed(100, rows=3, lengths="ids")

    def made() -> tfr.Loader:
        return tfr.Loader(path, packs, features=IDS, index_folder=tmp_path / "kept")

    loader = made()
    (table,) = loader.plan.batching._tables  # type: ignore[union-attr]
    assert table.lengths().tolist() == LENGTHS.tolist()
    kept = Path(os.fsdecode(table.path))
    assert kept.parent == tmp_path / "kept"
    assert len(loader.plan._encode()) < 500

    from tfrfast import _native

    assert not isinstance(
        table, _native.LengthTable
    )  # the plan does not hold them beside its order
    with monkeypatch.context() as patch:
        patch.setattr(_native, "count_lengths", lambda *_: pytest.fail("counted again"))
        assert made().plan == loader.plan
    whole = kept.read_bytes()
    for at in (9, 30, 60, len(whole) - 1):
        kept.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert made().plan == loader.plan  # counted again
        assert kept.read_bytes() == whole
    kept.write_bytes(whole[:-2])
    assert made().plan == loader.plan
    kept.write_text("the user's own")
    with pytest.raises(FileExistsError, match="does not begin like a file of tfrfast"):
        made()
    kept.unlink()

    Path(path).write_bytes(Path(path).read_bytes() + frame(tfr.encode_example({"ids": [1, 2]})))
    rested(Path(path))
    longer = made()
    assert longer.plan.num_records == len(LENGTHS) + 1
    with pytest.raises(ValueError, match="state is of"):
        longer.load_state_dict(loader.state_dict())
    in_memory = tfr.Loader(path, packs, features=IDS, index="memory")
    assert in_memory.plan.order_text == longer.plan.order_text
    by_tokens = tfr.Loader(path, tfr.ByTokens(200, "ids"), features=IDS)
    assert sorted(i for b in by_tokens for i in b.indices.tolist()) == list(range(len(LENGTHS) + 1))


def test_lengths_without_the_damaged_records_are_not_kept(tmp_path: Path) -> None:
    path = Path(write_tokens(tmp_path / "a", [5, 6, 7]))
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    rested(path)
    packs = tfr.Packed({"ids": 9, "more": 9}, rows=3)
    options: dict[str, Any] = {"features": {**IDS, "more": ALL["more"]}, "seed": 1}
    with pytest.warns(RuntimeWarning, match="Damage was left out"):
        loader = tfr.Loader(path, packs, on_corruption="skip", **options)
    assert sorted(i for batch in loader for i in batch.indices.tolist()) == [0, 1]
    with pytest.raises(tfr.CorruptRecordError):
        tfr.Loader(path, packs, **options)


def test_steps_are_packed_by_the_lengths_of_their_windows(tmp_path: Path) -> None:
    name = write_episodes(tmp_path / "data")
    features = {"steps/a": tfr.VarLen("float32"), "steps/n": tfr.FixedLen((), "int64")}
    for after in (3, 1, 3):  # the file of lengths is of one kind of steps at a time
        windows = {"steps/a": tfr.Window(after=after)}
        with tfr.Steps(name, along="steps/", windows=windows) as steps:
            packs = tfr.Packed(20, rows=3, lengths="steps/a")
            loader = tfr.Loader(steps, packs, features=features)
            seen = []
            for batch in loader:
                for number, (row, column) in zip(batch["steps/n"], batch.starts, strict=True):
                    here = batch.segments[row] == batch.segments[row, column]
                    assert batch["steps/a"][row, column] == number
                    assert here.sum() == 2 * (after + 1)
                    seen.append(int(number))
            assert sorted(seen) == list(range(100))


def test_the_context_of_a_sequence_example_is_packed_and_a_list_is_refused(tmp_path: Path) -> None:
    records = []
    for number in range(1, 9):
        ids = ints(*[number] * number)
        steps = entry(b"list", field(1, ids) * number)
        records.append(field(1, entry(b"ids", ids)) + field(2, steps))
    path = write_shard(tmp_path / "a", records)
    packs = tfr.Packed(20, rows=1, lengths="ids")
    found = Counter(token for b in tfr.Loader(path, packs, features=IDS) for token in b["ids"].flat)
    assert {number: found[number] for number in range(1, 9)} == {n: n for n in range(1, 9)}
    of_steps = {"list": tfr.VarLen("int64")}
    with pytest.raises(ValueError, match="No record has values of feature 'list'"):
        tfr.Loader(path, tfr.Packed(20, rows=1, lengths="list"), features=of_steps)


def test_an_empty_feature_replaces_an_earlier_one(tmp_path: Path) -> None:
    ids, nothing = entry(b"ids", ints(1, 2, 3)), entry(b"ids", b"")
    path = write_shard(tmp_path / "a", [field(1, ids + nothing), field(1, nothing + ids)])
    (batch,) = tfr.Loader(path, tfr.Packed(5, rows=1, lengths="ids"), features=IDS)
    assert batch.indices.tolist() == [1]
    assert batch["ids"].tolist() == [[1, 2, 3, 0, 0]]


def test_packs_of_a_mixture_come_by_weight(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    data = {
        "web": random.integers(5, 20, 400),
        "code": np.full(150, 55),
        "talk": random.integers(1, 60, 90),
    }
    firsts = np.cumsum([0, *map(len, data.values())])
    paths = {
        name: write_tokens(tmp_path / name, lengths, int(first))
        for (name, lengths), first in zip(data.items(), firsts, strict=False)
    }
    weights = {"web": 7, "code": 2, "talk": 1}
    mixture = tfr.Mixture({name: (paths[name], weights[name]) for name in data}, length=200, seed=2)
    loader = tfr.Loader(mixture, tfr.Packed(100, rows=10, lengths="ids"), features=IDS)
    for _ in range(2):
        for batch in loader:
            source = dict(zip(batch.starts[:, 0].tolist(), batch.sources.tolist(), strict=True))
            assert Counter(source.values()) == {0: 7, 1: 2, 2: 1}
            assert [*map(int, batch.sources)] == [
                source[row] for row in batch.starts[:, 0].tolist()
            ]
            for record, first, length in pieces_in(batch.as_dict()):
                assert (first, length) == (0, np.concatenate([*data.values()])[record])
    fill = loader.plan.fill
    assert fill.sources["code"].share == 0.55
    assert fill.packs == 200
    assert abs(sum(fill.token_shares.values()) - 1) < 1e-9
    assert fill.token_shares["code"] < 0.15
    loader.change_weights({"web": 0, "code": 1, "talk": 0})
    assert {int(batch.sources[0]) for batch in loader} == {1}


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: plan_of([9, 12], 10), ValueError, r"Record 1 has 12 tokens, and a row has 10\. "),
        (lambda: plan_of([9], 0), ValueError, "tokens is 0"),
        (lambda: plan_of([9], 10, rows=0), ValueError, "rows is 0"),
        (lambda: plan_of([9], 10, "crop"), ValueError, "overlong must be"),
        (lambda: plan_of([9, 30], 10, "split", indices=[1, 1]), ValueError, "must ascend without"),
        (lambda: plan_of([9], 10, indices=[1]), ValueError, "indices hold 1, but there are 1"),
        (lambda: plan_of("ids", 10), TypeError, "Packed needs lengths"),
        (lambda: tfr.Packed({"a": 3}, rows=1, lengths="a"), TypeError, "leave lengths out"),
        (lambda: tfr.Packed(3, rows=1, lengths="a", keys=("x", "{}")), ValueError, "two different"),
        (lambda: tfr.Plan(tfr.InOrder(), tfr.Packed(3, rows=1, lengths=[1]), num_records=1), TypeError, "goes with a Shuffle or a Mixture, not with In"),
        (lambda: tfr.Plan(tfr.Weighted([1]), tfr.Packed(3, rows=1, lengths=[1])), TypeError, "Packed needs an order"),
        (lambda: tfr.Plan(tfr.Mixture({"a": (1, 1)}, shuffle=False), tfr.Packed(3, rows=1, lengths=[1])), TypeError, "has shuffle=True"),
        (lambda: tfr.Plan(tfr.Mixture({"a": (1, 1)}, per_source=True), tfr.Packed(3, rows=1, lengths=[1])), TypeError, "leave per_source out"),
        (lambda: plan_of([1], 3).records_at(0, 0, 1), TypeError, "positions of a plan by tokens"),
        (lambda: tfr.Plan(tfr.InOrder(), 3, num_records=9).packs(0, 0), TypeError, "has packs"),
        (lambda: tfr.Plan(tfr.InOrder(), 3, num_records=9).fill, TypeError, "packs to fill"),
    ],
)  # fmt: skip
def test_what_cannot_be_packed(make: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        make()


def test_names_of_columns_come_once(tmp_path: Path) -> None:
    path = write_tokens(tmp_path / "a", [3, 4])
    for names, keys in (
        (["ids"], ("{}", "{}_positions")),
        (["ids", "ids_x"], ("{}_x_y", "{}_y")),
    ):
        packs = tfr.Packed(9, rows=1, lengths=names, keys=keys)
        with pytest.raises(ValueError, match="Give other names by keys="):
            tfr.Loader(path, packs, features=dict.fromkeys(names, IDS["ids"]))


def test_packs_by_other_features_are_not_equal() -> None:
    for make in (lambda n: tfr.Packed(8, rows=1, lengths=n), lambda n: tfr.ByTokens(8, n)):
        assert make("a") == make("a") != make("b")
        assert hash(make("a")) != hash(make("b"))


def test_features_that_cannot_be_packed(tmp_path: Path) -> None:
    path = write_tokens(tmp_path / "a", [3, 4])
    for features, lengths, kind, message in (
        (None, "ids", TypeError, "give features="),
        (IDS, "other", ValueError, "'other' is to be packed, but is not among the features"),
        (ALL, "name", ValueError, "ask for numbers as tfr.VarLen"),
        (IDS | {"same": tfr.VarLen("int64", key="ids")}, "ids", ValueError, "make no other column"),
        (
            IDS | {"at": tfr.SparseIndexed("ids", "mask", "float32", 9)},
            ["ids"],
            ValueError,
            "make no other column",
        ),
        (
            IDS | {"ids_positions": tfr.VarLen("int64")},
            ["ids"],
            ValueError,
            "Two columns would have the name 'ids_positions'",
        ),
        (IDS, [3], ValueError, "There are 1 lengths, but 2 records"),
        ({"no": tfr.VarLen("int64")}, "no", ValueError, "No record has values of feature 'no'"),
    ):
        with pytest.raises(kind, match=message):
            tfr.Loader(path, tfr.Packed(9, rows=1, lengths=lengths), features=features)  # type: ignore[arg-type]
    batch = next(iter(tfr.Loader(path, tfr.Packed(9, rows=1, lengths="ids"), features=ALL)))
    with pytest.raises(TypeError, match="no rows to take"):
        batch[:1]
    with pytest.raises(TypeError, match="Arrow has no place"):
        batch.to_arrow()
    copy = pickle.loads(pickle.dumps(batch))
    assert (copy.segments == batch.segments).all()
    assert set(copy.as_dict()) == set(batch.as_dict())


def test_the_picture_of_the_page_shows_the_packs_of_the_specification(tmp_path: Path) -> None:
    runpy.run_path(str(ROOT / "tools/packing_picture.py"))["draw"](tmp_path / "packing.svg")
    assert (tmp_path / "packing.svg").read_text() == (ROOT / "docs/packing.svg").read_text()
