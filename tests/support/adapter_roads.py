"""What every adapter must deliver: a Loader's batches, for each kind of source and from each place.

A road has the face of a Loader: each `for` is the rest of an epoch or the next epoch, and
`state_dict`, `load_state_dict` and `stats` do what the Loader's do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import event_files
import image_records
import packed_files
import step_choices
import step_files
import tfrfast as tfr
from counted import assert_counted
from every_order import ORDERS, is_refused, planned
from record_files import flip_payload_byte
from tfrfast import _native
from torch_data import FEATURES, NUM_RECORDS, example, until_an_error, write_examples

COLUMNS = FEATURES | {"sparse": tfr.VarLen("int64", sparse=True, key="numbers")}
SHUFFLED = tfr.Shuffle(3)
#: A function that calls an adapter with a source, a batching and options of a Loader.
Call = Callable[[Callable[..., Any]], Any]


class Road(NamedTuple):
    make: Callable[..., Any]
    #: What the road makes of the Batch of a Packed. None if it takes no Packed.
    packs: Callable[[tfr.Batch], Any] | None = lambda batch: batch
    resumes: bool = True
    #: Whether the next call tries a batch again that was an error.
    tries_again: bool = True


# ---- sources


def examples(folder: Path, **options: Any) -> Any:
    given = {"features": FEATURES, "order": SHUFFLED, **options}
    return tfr.Reader(write_examples(folder)), 10, given


def damaged(folder: Path, **reader_options: Any) -> Any:
    """Record 20 is damaged."""
    shards = write_examples(folder)
    first = [tfr.encode_example(example(number)) for number in range(NUM_RECORDS // 3)]
    flip_payload_byte(shards[0], first, 20)
    given = {"features": FEATURES, "order": tfr.InOrder(), "remainder": "pad"}
    return tfr.Reader(shards, index="memory", **reader_options), 7, given


def pictures(folder: Path) -> Any:
    if not _native.DECODES_IMAGES:
        pytest.skip("tfrfast was built without libjpeg-turbo and libpng")
    reader = tfr.Reader(image_records.write_images(folder))
    return reader, 5, {"features": image_records.FEATURES, "order": SHUFFLED}


def packs(folder: Path, packed: tfr.Packed) -> Any:
    lengths = np.random.default_rng(2).integers(0, 30, 200)
    reader = tfr.Reader(packed_files.write_tokens(folder / "tokens", lengths))
    return reader, packed, {"features": packed_files.ALL, "order": SHUFFLED}


def steps(folder: Path) -> Any:
    given = step_files.open_steps(folder / "steps")
    return given, 8, {"features": step_files.FEATURES, "order": SHUFFLED}


def choices(folder: Path) -> Any:
    """Each epoch draws from several features, for steps that `only` leaves."""
    path = step_choices.write_choices(folder / "choices")
    given = tfr.Steps(
        path,
        along="steps/",
        windows={"camera": step_choices.CAMERA, "text": step_choices.TEXT},
        only=slice(1, None, 2),
    )
    return given, 9, {"features": step_choices.FEATURES, "order": SHUFFLED}


def messages(folder: Path) -> Any:
    reader = tfr.Reader(event_files.write_events(folder / "events", 10))
    features = tfr.Message.event().features(event_files.PATHS)
    return reader, 4, {"features": features, "order": SHUFFLED}


#: What differs in more than the order. Each function gives an adapter's arguments.
SPECIAL: dict[str, Callable[[Path], Any]] = {
    "columns of every kind": partial(examples, features=COLUMNS),
    **{
        f"{remainder} of ranks": partial(examples, rank=1, world=3, remainder=remainder)
        for remainder in ("keep", "drop", "pad")
    },
    "damage that is skipped": partial(damaged, on_corruption="skip"),
    "pictures": pictures,
    "packs of long records": partial(packs, packed=tfr.Packed(64, rows=3, lengths="ids")),
    "packs of two budgets": partial(packs, packed=tfr.Packed({"ids": 64, "more": 9}, rows=3)),
    "steps": steps,
    "choices of steps": choices,
    "messages": messages,
}


def _given(arguments: Callable[[Path], Any], folder: Path) -> tuple[Call, tfr.Plan]:
    source, batching, options = arguments(folder)

    def call(adapter: Callable[..., Any]) -> Any:
        return adapter(source, batching, **options)

    return call, call(tfr.Loader).plan


#: Every order in every kind of batch, and the special sources. A plan is None if it is refused.
SOURCES: dict[str, Callable[[Path], tuple[Call, tfr.Plan | None]]] = {
    f"{name}: {batching}": partial(planned, name=name, batching=batching)
    for name in ORDERS
    for batching in ("rows", "tokens", "packs")
} | {name: partial(_given, arguments) for name, arguments in SPECIAL.items()}


# ---- batches


def plain(value: Any) -> Any:
    """Lists of numbers with the name of their type, alike for NumPy, PyTorch and JAX."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, tfr.Bytes):
        return value.tolist()
    if isinstance(value, tfr.Ragged):
        return plain([value.values, value.row_splits])
    if isinstance(value, tfr.columns.Pictures | list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, tfr.Sparse):
        return plain([value.indices, value.values, value.dense_shape])
    if getattr(value, "is_sparse", False):  # PyTorch's
        return plain([value._indices().T, value._values(), np.array(value.shape)])
    array = np.asarray(value)
    return array.dtype.name.replace("64", "32"), array.tolist()  # as JAX narrows them


ROWS = "indices", "valid", "sources", "crops"
PACKING = "segments", "positions", "starts", "pieces"


def plain_batch(batch: Any) -> Any:
    if isinstance(batch, tfr.Batch) and not isinstance(batch.indices, np.ndarray):
        # JAX would compile `sources` for each number of rows.
        rows = [np.asarray(each) for each in (batch.indices, batch.valid)]
        batch = tfr.Batch(batch, *rows, batch.source_starts, batch.crops)
    packing = getattr(batch, "packing", None)  # PyTorch's
    if packing is None:
        packing = {name: getattr(batch, name, None) for name in PACKING}
    rows = {name: plain(getattr(batch, name, None)) for name in ROWS}
    return plain(dict(batch)), rows, {name: plain(packing.get(name)) for name in PACKING}


def batches_from(road: Any) -> Iterator[Any]:
    """The batches from the road's place on, epoch after epoch."""
    for _ in range(3):  # the rest of an epoch, which may be nothing, and two others
        yield from road


# ---- verdicts


def assert_a_loaders(road: Road, source: str, folder: Path) -> None:
    """Two epochs are a Loader's, and so is what follows the first and the last batch of the first
    epoch, and a batch in the middle of the second: its rest, and the beginning of the third.
    """
    call, plan = SOURCES[source](folder)
    is_packed = plan is not None and isinstance(plan.batching, tfr.Packed)
    if is_packed and road.packs is None:
        plan = None
    if is_refused(call, plan, road.make):
        return
    assert plan is not None
    count = 2 * plan.steps + road.resumes
    expected = list(islice(batches_from(call(tfr.Loader)), count))
    if is_packed and road.packs is not None:
        expected = list(map(road.packs, expected))
    wanted = list(map(plain_batch, expected))
    begun = call(road.make)
    batches, found = batches_from(begun), list[Any]()
    for place in (1, plan.steps, plan.steps + plan.steps // 2) if road.resumes else []:
        found += map(plain_batch, islice(batches, place - len(found)))
        state = json.loads(json.dumps(begun.state_dict()))
        resumed = call(road.make)
        resumed.load_state_dict(state)
        rest = islice(batches_from(resumed), count - place)
        assert list(map(plain_batch, rest)) == wanted[place:]
    found += map(plain_batch, islice(batches, count - len(found)))
    assert found == wanted


def assert_an_error_comes_at_its_place(road: Road, folder: Path) -> None:
    source, batching, options = damaged(folder)
    expected = tfr.Loader(source, batching, **options)
    batches = until_an_error(road.make(source, batching, **options))
    for wanted in islice(expected, 2):
        assert plain_batch(next(batches)) == plain_batch(wanted)
    for _ in range(2 if road.tries_again else 1):
        with pytest.raises(tfr.CorruptRecordError):
            next(batches)


def assert_an_epoch_is_counted(make: Callable[..., Any], folder: Path) -> None:
    source, batching, options = examples(folder)
    begun = make(source, batching, **options)
    steps = tfr.Loader(source, batching, **options).plan.steps
    assert len(list(begun)) == steps
    assert_counted(begun.stats(), NUM_RECORDS, steps)
