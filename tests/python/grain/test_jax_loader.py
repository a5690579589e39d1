"""tfrfast.jax.Loader gives the Loader's batches on devices, and copies batches ahead."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from data_service import free_ports
from image_records import loader_of, write_images
from mixed_files import mixture_of, write_sets
from packed_files import ALL, IDS, pieces_in, write_tokens
from patience import PATIENCE_S
from record_files import write_shard
from tfrfast import _native
from torch_data import FEATURES, ID, NUM_RECORDS, example, flat, ids

jax = pytest.importorskip("jax")
tj = pytest.importorskip("tfrfast.jax", exc_type=ModuleNotFoundError)

from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402


def columns(shards: list[str], **options: Any) -> tfr.Loader:
    return tfr.Loader(shards, **{"batch_size": 8, "features": ID, "seed": 3, **options})


def rows_over_devices() -> Any:
    devices = jax.devices("cpu")
    assert len(devices) == 4, "tests/python/grain/conftest.py asks for four"
    return NamedSharding(Mesh(np.array(devices), ("rows",)), PartitionSpec("rows"))


def test_a_pickle_gives_the_rest_of_the_epoch_on_devices(shards: list[str]) -> None:
    ours = tj.Loader(columns(shards), ahead=5)
    batches = iter(ours)
    next(batches)
    restored = pickle.loads(pickle.dumps(ours))
    assert restored.state_dict() == ours.state_dict()
    for expected, batch in zip(batches, restored, strict=True):
        assert isinstance(batch["id"], jax.Array)
        assert batch["id"].tolist() == expected["id"].tolist()


def test_a_break_begins_the_next_epoch_and_ends_the_other_for(shards: list[str]) -> None:
    ours, plain = tj.Loader(columns(shards), ahead=100), columns(shards)
    first = iter(ours)
    next(first)
    plain.set_epoch(1)
    assert ids(ours) == ids(plain)
    with pytest.raises(RuntimeError, match="Another iteration of this loader has begun"):
        next(first)
    second = iter(ours)
    next(second)
    ours.set_epoch(7)
    with pytest.raises(RuntimeError, match="has moved this loader"):
        next(second)
    plain.set_epoch(7)
    assert ids(ours) == ids(plain)


def test_every_kind_of_column(shards: list[str]) -> None:
    features = FEATURES | {"sparse": tfr.VarLen("int64", sparse=True, key="numbers")}
    for batch in tj.Loader(columns(shards, features=features)):
        assert isinstance(batch["dense"], jax.Array)
        assert isinstance(batch["numbers"].values, jax.Array)
        assert isinstance(batch["sparse"].values, jax.Array)
        assert isinstance(batch["name"], tfr.Bytes)
        for row, number in enumerate(batch.indices.tolist()):
            expected = example(number)
            assert batch["dense"][row].tolist() == expected["dense"]
            assert batch["numbers"][row].tolist() == expected["numbers"]
            assert batch["name"][row] == expected["name"]
            assert batch["words"][row].tolist() == expected["words"]


def test_rows_are_spread_over_devices(shards: list[str]) -> None:
    features = {name: FEATURES[name] for name in ("id", "dense")}
    rows = rows_over_devices()
    seen = []
    for batch in tj.Loader(columns(shards, features=features, remainder="pad"), rows):
        assert batch["dense"].sharding == rows
        assert [part.data.shape for part in batch["dense"].addressable_shards] == [(2, 3)] * 4
        total = jax.jit(lambda batch: (batch["dense"][:, 0] * batch.valid).sum())(batch)
        real = batch.indices[batch.valid].tolist()
        assert total == sum(real)
        seen += real
    assert sorted(seen) == list(range(NUM_RECORDS))


def test_what_cannot_be_sharded_is_an_error(shards: list[str]) -> None:
    rows = rows_over_devices()
    with pytest.raises(ValueError, match="remainder="):
        tj.Loader(columns(shards), rows)
    with pytest.raises(ValueError, match="give it features"):
        tj.Loader(columns(shards, features=None))
    with pytest.raises(ValueError, match="ahead"):
        tj.Loader(columns(shards), ahead=-1)
    ragged = columns(shards, features={"numbers": FEATURES["numbers"]}, remainder="drop")
    with pytest.raises(ValueError, match="Feature 'numbers': rows of any length"):
        next(iter(tj.Loader(ragged, rows)))


def test_a_batch_that_lost_rows_is_not_sharded(damaged: list[str]) -> None:
    whole = columns(
        damaged,
        features={"id": FEATURES["id"]},
        shuffle=False,
        remainder="drop",
        on_corruption="skip",
    )
    iterator = iter(tj.Loader(whole, rows_over_devices()))
    assert [len(next(iterator).valid) for _ in range(2)] == [8, 8]
    with pytest.raises(ValueError, match=r"7 rows of 8.* damaged records were left out"):
        next(iterator)


def test_numbers_that_do_not_fit_are_an_error_and_no_batch_is_passed_over(tmp_path: Any) -> None:
    numbers = [1, -(2**31), 2**31 - 1, 5, 2**31, 6]
    file = write_shard(tmp_path / "data", [tfr.encode_example({"id": each}) for each in numbers])
    ours = tj.Loader(columns([file], shuffle=False, batch_size=2))
    iterator = iter(ours)
    assert [next(iterator)["id"].tolist() for _ in range(2)] == [numbers[:2], numbers[2:4]]
    for _ in range(2):
        with pytest.raises(OverflowError, match=r"Feature 'id': 2147483648 .*jax_enable_x64"):
            next(iterator)
    jax.config.update("jax_enable_x64", True)
    try:
        assert next(iterator)["id"].tolist() == numbers[4:]
    finally:
        jax.config.update("jax_enable_x64", False)
    assert next(iterator, None) is None


PROCESS = """
import json, pathlib, sys
import jax
port, rank, results, *shards = sys.argv[1:]
jax.distributed.initialize(f"localhost:{port}", 2, int(rank))
import numpy as np
import tfrfast as tfr, tfrfast.jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from torch_data import ID
rows = NamedSharding(Mesh(np.array(jax.devices()), ("rows",)), PartitionSpec("rows"))
loader = tfr.Loader(shards, 4, features=ID, seed=3, remainder="pad",
                    rank=jax.process_index(), world=jax.process_count())
steps = []
for batch in tfrfast.jax.Loader(loader, rows):
    total = jax.jit(lambda id, valid: (id * valid).sum())(batch["id"], batch.valid)
    mine = np.concatenate([np.asarray(part.data) for part in batch["id"].addressable_shards])
    valid = np.concatenate([np.asarray(part.data) for part in batch.valid.addressable_shards])
    steps.append([batch["id"].shape[0], int(total), *mine[valid].tolist()])
pathlib.Path(results).write_text(json.dumps(steps))
"""


def test_two_processes_give_the_rows_of_global_arrays(shards: list[str], tmp_path: Path) -> None:
    (port,) = free_ports(1)
    # In files, because the coordinator of the processes writes to standard output.
    results = [tmp_path / f"steps-{rank}.json" for rank in range(2)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(port), str(rank), str(results[rank]), *shards],
            stdout=subprocess.DEVNULL,
            env=os.environ | {"JAX_PLATFORMS": "cpu"},  # two processes cannot share a GPU's memory
        )
        for rank in range(2)
    ]
    assert [process.wait(timeout=PATIENCE_S) for process in processes] == [0, 0]
    steps = [json.loads(result.read_text()) for result in results]
    for ours, theirs in zip(*steps, strict=True):
        assert ours[:2] == theirs[:2] == [8, sum(ours[2:]) + sum(theirs[2:])]
    seen = flat([step[2:] for rank in steps for step in rank])
    assert sorted(seen) == list(range(NUM_RECORDS))


def test_a_transform_replaces_columns(shards: list[str]) -> None:
    def halved(batch: tfr.Batch) -> tfr.Batch:
        batch["half"] = batch["id"].astype(np.float32) / 2
        return batch

    plain = columns(shards)
    ours = tj.Loader(columns(shards, transform=halved), ahead=3)
    for expected, batch in zip(plain, ours, strict=True):
        assert np.asarray(batch["half"]).tolist() == (expected["id"] / 2).tolist()
        assert ours.state_dict() == plain.state_dict()
    with pytest.raises(TypeError, match="transform must return the Batch it was given"):
        next(iter(tj.Loader(columns(shards, transform=len))))


def test_an_error_names_the_argument() -> None:
    with pytest.raises(TypeError, match="loader must be .*Loader, not 5"):
        tj.Loader(5)


# ---- images, mixtures and packed rows


@pytest.mark.skipif(not _native.DECODES_IMAGES, reason="tfrfast was built without image codecs")
def test_crops_are_arrays_on_devices_and_pictures_of_any_size_stay_on_the_host(
    tmp_path: Path,
) -> None:
    batch = next(iter(tj.Loader(loader_of(write_images(tmp_path)))))
    assert isinstance(batch.crops["sized"]["top"], jax.Array)
    assert isinstance(batch["own"][0], np.ndarray)
    doubled = jax.jit(lambda batch: batch.crops["sized"]["top"] * 2)(batch)
    assert np.array_equal(doubled, np.asarray(batch.crops["sized"]["top"]) * 2)
    assert jax.tree.map(lambda each: each, batch)[1:3].crops["own"]["left"].shape == (2,)


def test_sources_of_a_mixture_may_be_traced(tmp_path: Path) -> None:
    given = tfr.Loader(mixture_of(write_sets(tmp_path)), 16, features=ID, remainder="drop")
    batch, expected = next(iter(tj.Loader(given))), next(iter(given))
    traced = jax.jit(lambda batch: batch.sources)
    assert np.asarray(traced(batch)).tolist() == expected.sources.tolist()
    again = jax.tree.map(lambda leaf: leaf, batch)
    assert again.source_starts.tolist() == expected.source_starts.tolist() == [0, 50, 80]


PACKS = tfr.Packed(64, rows=3, lengths="ids")
LENGTHS = np.random.default_rng(2).integers(0, 30, 200)


def test_a_packed_batch_is_no_pytree_but_its_dict_is(tmp_path: Path) -> None:
    loader = tfr.Loader(write_tokens(tmp_path / "a", LENGTHS), PACKS, features=IDS)
    batch = next(iter(loader))
    with pytest.raises(TypeError, match=r"take batch\.as_dict\(\)"):
        jax.tree.map(np.copy, batch)
    assert jax.tree.map(np.copy, batch.as_dict()).keys() == {
        "ids",
        "ids_segment_ids",
        "ids_positions",
    }


def test_packed_rows_are_sharded(tmp_path: Path) -> None:
    path = write_tokens(tmp_path / "a", LENGTHS)
    sharding = rows_over_devices()
    packs = tfr.Packed(64, rows=8, lengths="ids")
    loader = tfr.Loader(path, packs, features=IDS, remainder="pad")
    found: Counter[Any] = Counter()
    for batch in tj.Loader(loader, sharding):
        assert all(
            each.sharding == sharding and each.shape == (packs.rows, 64) for each in batch.values()
        )
        found += pieces_in(batch)
    assert found == Counter({(i, 0, n): 1 for i, n in enumerate(LENGTHS.tolist()) if n})
    others = tfr.Loader(path, packs, features=ALL, remainder="pad")
    with pytest.raises(ValueError, match="'name' has values for each record"):
        tj.Loader(others, sharding)
