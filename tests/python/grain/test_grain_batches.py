"""IterDataset gives the Loader's batches for all ranks and workers, after stops, too."""

from __future__ import annotations

import copy
import json
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from torch_data import FEATURES, ID, ids, write_examples

grain = pytest.importorskip("grain")
tg = pytest.importorskip("tfrfast.grain", exc_type=ModuleNotFoundError)

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*")


def loader(shards: list[str], **options: Any) -> tfr.Loader:
    return tfr.Loader(shards, **{"batch_size": 7, "features": ID, "seed": 3, **options})


def test_a_transform_runs_in_the_iterator_and_in_workers(shards: list[str]) -> None:
    plain = epochs_of(loader(shards), 2)
    dataset = tg.IterDataset(loader(shards, transform=lambda batch: batch["id"] + 1), epochs=2)
    expected = [[number + 1 for number in batch] for batch in plain]
    iterator = iter(dataset)
    first = [next(iterator).tolist() for _ in range(3)]
    state = iterator.get_state()
    assert first + [batch.tolist() for batch in iterator] == expected
    again = iter(dataset)
    again.set_state(state)
    assert [batch.tolist() for batch in again] == expected[3:]
    part = tg.IterDataset(loader(shards, transform=lambda batch: batch["id"] + 1), epochs=2)
    part.set_slice(slice(1, None, 2))
    assert [batch.tolist() for batch in part] == expected[1::2]


def epochs_of(plain: tfr.Loader, count: int) -> list[list[int]]:
    return [batch for _ in range(count) for batch in ids(plain)]


def same(ours: tfr.Batch, theirs: tfr.Batch) -> None:
    assert type(ours) is type(theirs)
    assert list(ours) == list(theirs)
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_array_equal(ours.valid, theirs.valid)
    for name in ours:
        if isinstance(theirs[name], (tfr.Ragged, tfr.Bytes)):
            assert ours[name].tolist() == theirs[name].tolist()
        else:
            np.testing.assert_array_equal(ours[name], theirs[name])


def test_it_begins_where_the_loader_stands_and_does_not_move_it(shards: list[str]) -> None:
    plain = loader(shards)
    for _ in zip(range(5), plain, strict=False):
        pass
    before = plain.state_dict()
    dataset = tg.IterDataset(plain, epochs=2)
    first, second = ids(dataset), ids(dataset)
    parts = [copy.copy(dataset) for _ in range(3)]
    for worker, part in enumerate(parts):
        part.set_slice(slice(worker, None, 3))
    turns = map(ids, parts)
    sliced = [batch for turn in zip_longest(*turns) for batch in turn if batch is not None]
    assert plain.state_dict() == before
    assert first == second == sliced == epochs_of(copy.copy(plain), 2)


@pytest.mark.parametrize("worker", [0, 1, 2])
def test_a_workers_state_continues_after_every_batch(shards: list[str], worker: int) -> None:
    def part() -> Any:
        dataset = tg.IterDataset(loader(shards), epochs=2)
        dataset.set_slice(slice(worker, None, 3))
        return iter(dataset)

    expected, iterator = ids(part()), part()
    for taken in range(len(expected) + 1):
        resumed = part()
        resumed.set_state(json.loads(json.dumps(iterator.get_state())))
        assert ids(resumed) == expected[taken:]
        next(iterator, None)
    assert next(iterator, None) is None


def test_a_pipeline_of_processes_resumes_in_the_middle(shards: list[str]) -> None:
    def pipeline() -> Any:
        dataset = tg.IterDataset(loader(shards), epochs=2)
        return iter(dataset.mp_prefetch(grain.MultiprocessingOptions(num_workers=2)))

    expected = epochs_of(loader(shards), 2)
    first = pipeline()
    assert ids(next(first) for _ in range(17)) == expected[:17]
    state = first.get_state()
    first.close()
    resumed = pipeline()
    resumed.set_state(state)
    assert ids(resumed) == expected[17:]


def test_states_that_do_not_fit_are_refused(shards: list[str], tmp_path: Path) -> None:
    state = iter(tg.IterDataset(loader(shards))).get_state()
    others = write_examples(tmp_path / "others", 50)
    for files, options, why in [
        (shards, {"seed": 4}, "order"),
        (others, {}, "order|fingerprint|removed or rewritten"),
    ]:
        with pytest.raises(ValueError, match=why):
            iter(tg.IterDataset(loader(files, **options))).set_state(state)
    with pytest.raises(ValueError, match="missing 'format'"):
        iter(tg.IterDataset(loader(shards))).set_state({"next_index": 3})
    with pytest.raises(TypeError, match="it is no dict, but list"):
        iter(tg.IterDataset(loader(shards))).set_state([])  # type: ignore[arg-type]
    part = tg.IterDataset(loader(shards))
    part.set_slice(slice(1, None, 2))
    for key, value in (("worker", 0), ("workers", 3), ("batch_size", 8)):
        with pytest.raises(ValueError, match=f"its {key} is {value}"):
            iter(part).set_state(iter(part).get_state() | {key: value})
    for wrong in (-1, 2**40, 1.0, "1"):
        with pytest.raises(ValueError, match="step"):
            iter(part).set_state(iter(part).get_state() | {"step": wrong})


def test_a_slice_of_a_slice_is_refused(shards: list[str]) -> None:
    dataset = tg.IterDataset(loader(shards))
    for wrong in (slice(3, None, 3), slice(0, 5, 2), slice(-1, None, 2)):
        with pytest.raises(ValueError, match=r"slice\(i, None, n\)"):
            dataset.set_slice(wrong)
    dataset.set_slice(slice(1, None, 2))
    dataset.set_slice(slice(1, None, 2))
    with pytest.raises(ValueError, match="Give rank and world"):
        dataset.set_slice(slice(0, None, 2))


@pytest.mark.parametrize("sliced", [False, True])
def test_without_records_there_are_no_batches(shards: list[str], sliced: bool) -> None:
    dataset = tg.IterDataset(loader(shards, seed=None, order=tfr.InOrder(indices=[])), epochs=None)
    if sliced:
        dataset.set_slice(slice(0, None, 2))
    assert list(dataset) == []


def test_epochs_none_never_ends_and_none_at_all_is_an_error(shards: list[str]) -> None:
    iterator = iter(tg.IterDataset(loader(shards), epochs=None))
    assert ids(next(iterator) for _ in range(40)) == epochs_of(loader(shards), 3)[:40]
    with pytest.raises(ValueError, match="at least 1"):
        tg.IterDataset(loader(shards), epochs=0)


def test_an_error_names_the_argument(shards: list[str]) -> None:
    with pytest.raises(TypeError, match="loader must be Loader, not 5"):
        tg.IterDataset(5)
    with pytest.raises(TypeError, match="epochs must be an integer, not str"):
        tg.IterDataset(loader(shards), epochs="all")


def test_a_batch_is_a_pytree_of_its_columns(shards: list[str]) -> None:
    jax = pytest.importorskip("jax")
    features = FEATURES | {"sparse": tfr.VarLen("int64", sparse=True, key="numbers")}
    batch = next(iter(tg.IterDataset(loader(shards, features=features))))
    leaves, structure = jax.tree.flatten(batch)
    assert all(isinstance(leaf, np.ndarray) for leaf in leaves)
    again = jax.tree.unflatten(structure, leaves)
    same(
        tfr.Batch({k: again[k] for k in FEATURES}, again.indices, again.valid),
        tfr.Batch({k: batch[k] for k in FEATURES}, batch.indices, batch.valid),
    )
    np.testing.assert_array_equal(again["sparse"].to_dense(), batch["sparse"].to_dense())
    doubled = jax.tree.map(lambda leaf: leaf * 2, batch)
    np.testing.assert_array_equal(doubled["numbers"].values, batch["numbers"].values * 2)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(batch)]
    assert {"['id']", "['numbers'].row_splits", ".indices", ".valid"} <= set(paths)
