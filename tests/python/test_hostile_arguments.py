"""Every public callable with wrong arguments: only finished sentences of ours come back."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from record_files import write_shard
from step_files import write_episodes
from tfrfast.columns import Pictures


class Odd:
    """A class that nothing takes."""


_HOLDS_ITSELF: list[Any] = []
_HOLDS_ITSELF.append(_HOLDS_ITSELF)
HOSTILE: list[Any] = [
    *(None, True, 0, 1, -1, 2**31, 2**63, 2**64, -(10**30), 1.5, float("nan"), 1j),
    *("x", "", "\ud800", "a\0b", b"x", b"\xff", bytearray(b"x"), Path("x")),
    *([], [None], ["\ud800"], ["a\0b"], [1.5], [-1], [2**64], [[]], [b"x", 1], _HOLDS_ITSELF),
    *((), (1,), (1, 2), (None, None), {}, {"a": None}, {1: 2}, {"\ud800": 1}, {"a": (1, 2)}),
    *({1, "a"}, slice(None), slice("a"), range(3), object(), Odd, len, iter(()), ...),
    *(np.int64(3), np.float32(1.5), np.array(1), np.array([1, 2]), np.array(["a"])),
    *(np.zeros((2, 2)), np.array([None]), np.array([2**64 - 1], np.uint64)),
    *(np.array([True]), np.datetime64("2026-01-01"), memoryview(b"x")),
]
_ERRORS = TypeError, ValueError, IndexError, OSError, ImportError, MemoryError, tfr.RecordError
_FOREIGN = re.compile(
    r"incompatible|Unable to (cast|convert)|std::|has no attribute|object is not|not supported|"
    r"unhashable|unexpected keyword|must be real number|truth value|could not|cannot be interpreted"
)


# A FileDescriptorSet of `message M { E f = 1; } enum E { A = 0; }`.
_DESCRIPTOR = bytes.fromhex("0a2022120a014d120d0a016618012001280e32022e452a0a0a014512050a01411000")


def is_ours(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.filename is not None:
        return True
    text = str(error)
    return (
        isinstance(error, _ERRORS)
        and not isinstance(error, UnicodeError)
        and re.search(r"[^.]\.\)?$", text) is not None
        and _FOREIGN.search(text) is None
    )


def is_about_anything(argument: str, error: Exception) -> bool:
    """Some arguments may be of any type, so that NumPy's own words follow."""
    anything = ("default", "dtype", "fill", "pad")
    return argument in anything and str(error).startswith("An argument of")


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Callable[..., Any], Any]]:
    """The public callables, each with right arguments."""
    folder = tmp_path_factory.mktemp("hostile")
    os.chdir(folder)
    shard = write_shard(folder / "shard", [tfr.encode_example({"n": [i]}) for i in range(3)])
    episodes = write_episodes(folder / "episodes")
    tfr.build_keys(shard, "n")
    reader = tfr.Reader(shard)
    keyed = reader.by_key("n")
    steps = tfr.Steps(episodes, along="steps/")
    mixture = tfr.Mixture({"a": (reader, 1), "b": (2, 3)})
    loader = tfr.Loader(reader, 2)
    joined = tfr.Loader(tfr.Mixture({"a": (reader, 1)}), 2)
    plan = tfr.Plan(tfr.Shuffle(), 2, num_records=3)
    ragged = tfr.Ragged(np.arange(3), np.array([0, 1, 3]))
    sparse = tfr.Sparse(np.array([[0]]), np.array([7]), np.array([1]))
    numbers = np.arange(3)
    packed = tfr.Plan(tfr.Shuffle(), tfr.Packed(7, rows=1, lengths=[3, 4, 5]), num_records=3)
    writer = tfr.Writer("open", overwrite=True)
    sharded = tfr.ShardedWriter("open-set", num_shards=2)
    to_a_shard = {"num_shards": 1, "overwrite": True, "sync": False}
    return {
        "Batch": (tfr.Batch, {"columns": {"n": numbers}, "indices": numbers, "valid": numbers > 0}),
        "BlockShuffle": (tfr.BlockShuffle, {"block_records": 2, "window_blocks": 2}),
        "ByTokens": (tfr.ByTokens, {"tokens": 7}),
        "Bytes": (tfr.Bytes, {"data": np.zeros(2, np.uint8), "offsets": np.array([0, 2])}),
        "DiskCache": (tfr.DiskCache, {"folder": "cache", "limit": "1G"}),
        "FixedLen": (tfr.FixedLen, {"shape": (), "dtype": "int64"}),
        "FixedLenSequence": (tfr.FixedLenSequence, {"shape": (), "dtype": "int64"}),
        "Image": (lambda **given: parsed(reader, tfr.Image(**given)), {}),
        "InOrder": (tfr.InOrder, {}),
        "Keyed.all": (keyed.all, {"key": 1}),
        "Keyed.find": (keyed.find, {"keys": [1]}),
        "Keyed.get": (keyed.get, {"key": 1}),
        "Keyed.join": (keyed.join, {"other": keyed}),
        "Later": (
            lambda **given: windowed(episodes, later=tfr.Later(**given)),
            {"of": "steps/n", "seed": 1},
        ),
        "OneOf": (
            lambda names, **given: windowed(
                episodes, n=tfr.Later("steps/n", seed=1), one=tfr.OneOf("steps/n", names, **given)
            ),
            {"names": "n"},
        ),
        "keep_ranges": (tfr.keep_ranges, {"ranges": {"a": [[0, 1]]}}),
        "Loader": (lambda **given: first(tfr.Loader(**given)), {"source": reader, "batch_size": 2}),
        "Loader.change_weights": (joined.change_weights, {"weights": {"a": 1}}),
        "Loader.load_state_dict": (loader.load_state_dict, {"state": loader.state_dict()}),
        "Loader.set_epoch": (loader.set_epoch, {"epoch": 1}),
        "Loader.timeline": (loader.timeline, {"steps": 3}),
        "Mixture": (tfr.Mixture, {"sources": {"a": (reader, 1)}}),
        "Mixture.counts": (mixture.counts, {"epoch": 0, "position": 1}),
        "Mixture.with_weights": (
            mixture.with_weights,
            {"weights": {"a": 1, "b": 1}, "epoch": 1, "position": 0},
        ),
        "Pictures": (
            Pictures,
            {
                "values": np.zeros(3, np.uint8),
                "row_splits": np.array([0, 3]),
                "shapes": np.array([[1, 1, 3]]),
            },
        ),
        "Plan": (tfr.Plan, {"order": tfr.Shuffle(), "batching": 2, "num_records": 3}),
        "Packed": (tfr.Packed, {"tokens": 7, "rows": 1}),
        "Plan.packs": (packed.packs, {"epoch": 0, "step": 0}),
        "Plan.indices": (plan.indices, {"epoch": 0, "step": 0}),
        "Plan.find": (plan.find, {"record": 1, "epoch": 0}),
        "Plan.position_after": (plan.position_after, {"step": 0}),
        "Plan.records_at": (plan.records_at, {"epoch": 0, "first": 0, "last": 1}),
        "Plan.rest_after": (plan.rest_after, {"position": 0}),
        "Plan.rows": (plan.rows, {"epoch": 0, "step": 0}),
        "Ragged": (tfr.Ragged, {"values": numbers, "row_splits": np.array([0, 3])}),
        "Ragged.to_padded": (ragged.to_padded, {}),
        "Reader": (tfr.Reader, {"paths": shard}),
        "Reader.__getitem__": (lambda key: reader[key], {"key": 1}),
        "Reader.by_key": (reader.by_key, {"feature": "n"}),
        "Reader.locate": (reader.locate, {"i": 1}),
        "Reader.read": (reader.read, {"indices": [1]}),
        "RecordBatch": (
            tfr.RecordBatch,
            {
                "data": np.zeros(3, np.uint8),
                "offsets": np.array([0, 3]),
                "indices": np.array([0]),
                "valid": np.array([True]),
                "source_starts": None,
            },
        ),
        "RecordBatch.__getitem__": (lambda key: reader[:][key], {"key": 1}),
        "RecordBatch.view": (reader[:].view, {"row": 0}),
        "SerializedTensor": (tfr.SerializedTensor, {"shape": (2,), "dtype": "float32"}),
        "ShardedWriter": (tfr.ShardedWriter, {"prefix": "set", "num_shards": 1, "overwrite": True}),
        "ShardedWriter.write": (sharded.write, {"record": b"x"}),
        "ShardedWriter.write_batch": (sharded.write_batch, {"records": [b"x"]}),
        "ShardedWriter.write_example": (sharded.write_example, {"features": {"n": 1}}),
        "Shuffle": (tfr.Shuffle, {}),
        "Sparse": (
            tfr.Sparse,
            {
                "indices": np.array([[0]]),
                "values": np.array([7]),
                "dense_shape": np.array([1]),
            },
        ),
        "Sparse.to_dense": (sparse.to_dense, {}),
        "Message": (tfr.Message, {"descriptor": _DESCRIPTOR, "name": "M"}),
        "Message.features": (tfr.Message(_DESCRIPTOR, "M").features, {"paths": ["f"]}),
        "Message.has": (tfr.Message.event().has, {"path": "summary"}),
        "Message.names": (tfr.Message(_DESCRIPTOR, "M").names, {"path": "f"}),
        "Scaled": (
            lambda **given: parsed(reader, tfr.Scaled(**given)),
            {"spec": tfr.VarLen("float32"), "mean": 0.0, "std": 1.0},
        ),
        "Bounds": (
            lambda **given: parsed(reader, tfr.Bounds(**given)),
            {"spec": tfr.VarLen("float32"), "low": 0.0, "high": 1.0},
        ),
        "SparseIndexed": (
            lambda **given: parsed(reader, tfr.SparseIndexed(**given)),
            {"index_keys": "n", "value_key": "n", "dtype": "int64", "size": 9},
        ),
        "Steps": (tfr.Steps, {"source": episodes, "along": "steps/"}),
        "Steps.locate": (steps.locate, {"i": 0}),
        "Steps.read": (steps.read, {"indices": [0]}),
        "VarLen": (lambda **given: parsed(reader, tfr.VarLen(**given)), {"dtype": "int64"}),
        "Weighted": (tfr.Weighted, {"weights": [1, 2, 3]}),
        "Window": (lambda **given: windowed(episodes, **{"steps/n": tfr.Window(**given)}), {}),
        "Writer": (tfr.Writer, {"path": "new", "overwrite": True}),
        "Writer.write": (writer.write, {"record": b"x"}),
        "Writer.write_batch": (writer.write_batch, {"records": [b"x"]}),
        "Writer.write_example": (writer.write_example, {"features": {"n": 1}}),
        "build_index": (tfr.build_index, {"paths": shard}),
        "build_keys": (tfr.build_keys, {"source": shard, "feature": "n"}),
        "build_steps": (tfr.build_steps, {"source": episodes, "along": "steps/"}),
        "copy": (
            tfr.copy,
            {"source": reader, "records": [0], "out": "copied", **to_a_shard},
        ),
        "delete": (tfr.delete, {"paths": shard, "records": [], "dry_run": True}),
        "diff": (tfr.diff, {"a": shard, "b": reader}),
        "encode_example": (tfr.encode_example, {"features": {"n": 1}}),
        "encode_examples": (tfr.encode_examples, {"columns": {"n": [1, 2]}}),
        "export": (
            tfr.export,
            {"source": reader, "out": "exported", **to_a_shard},
        ),
        "infer_features": (tfr.infer_features, {"source": shard}),
        "parse_example": (
            tfr.parse_example,
            {"serialized": reader[:], "features": {"n": tfr.VarLen("int64")}},
        ),
        "parse_sequence_example": (
            tfr.parse_sequence_example,
            {"serialized": reader[:], "context_features": {"n": tfr.VarLen("int64")}},
        ),
        "scan": (lambda **given: first(tfr.scan(**given)), {"source": reader}),
        "shuffle": (
            tfr.shuffle,
            {"paths": shard, "out": "shuffled", **to_a_shard},
        ),
        "statistics": (tfr.statistics, {"source": reader}),
        "tfds": (tfr.tfds, {"folder": ".", "split": "train"}),
        "verify": (tfr.verify, {"paths": shard}),
    }


@pytest.mark.filterwarnings("ignore")  # NumPy's casts
def test_wrong_arguments_are_refused_in_sentences(
    calls: dict[str, tuple[Callable[..., Any], Any]],
) -> None:
    raw = []
    for name, (call, right) in calls.items():
        with contextlib.suppress(tfr.RecordError, OSError, ImportError):
            call(**right)
        for argument in arguments_of(name, call) | right.keys():
            for wrong in HOSTILE:
                if argument == "progress" or (argument == "transform" and callable(wrong)):
                    continue  # which would draw, and fail by itself
                try:
                    made = call(**right | {argument: wrong})
                except Exception as error:
                    if not is_ours(error) and not is_about_anything(argument, error):
                        raw.append(f"{name}({argument}={wrong!r}): {error!r}")
                else:
                    if isinstance(made, tfr.Writer | tfr.ShardedWriter):
                        made.abort()
    assert not raw, "\n".join(raw)


def arguments_of(name: str, call: Callable[..., Any]) -> set[str]:
    """Returns the names of all arguments. Natives and lambdas show none."""
    shown = getattr(tfr, name, call) if "." not in name else call
    if not inspect.isclass(shown) and not inspect.isroutine(shown):
        return set()
    try:
        arguments = inspect.signature(shown).parameters.values()
    except ValueError:
        return set()
    return {each.name for each in arguments if each.kind is not each.VAR_KEYWORD} - {"key"}


def test_a_loader_trusts_nothing_in_a_state(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "shard", [b"%d" % i for i in range(9)])
    raw = []
    for source in (shard, tfr.Mixture({"a": (shard, 1)})):
        loader = tfr.Loader(source, 2)
        next(iter(loader))
        state = loader.state_dict()
        wrong_weights = [[[0, 0, wrong]] for wrong in HOSTILE] + [[wrong] for wrong in HOSTILE]
        for key in state:
            for wrong in HOSTILE + wrong_weights * (key == "weights"):
                try:
                    loader.load_state_dict(state | {key: wrong})
                except Exception as error:
                    if not is_ours(error):
                        raw.append(f"{key}={wrong!r}: {error!r}")
        loader.load_state_dict(state)
        assert loader.state_dict() == state
    assert not raw, "\n".join(raw)


def test_the_table_has_every_public_callable(
    calls: dict[str, tuple[Callable[..., Any], Any]],
) -> None:
    public = {name: getattr(tfr, name) for name in tfr.__all__}
    for name, kind in list(public.items()):
        if inspect.isclass(kind):
            public |= {
                f"{name}.{method}": value
                for method, value in vars(kind).items()
                if not method.startswith("_") and inspect.isfunction(value)
            }
    asked = {
        name
        for name, value in public.items()
        if (inspect.isclass(value) or inspect.isfunction(value))
        and not (inspect.isclass(value) and issubclass(value, Exception))
        and (inspect.isclass(value) or len(inspect.signature(value).parameters) > name.count("."))
    }
    asked -= {"Loader.to_keras", "Loader.to_tf_dataset"}  # TensorFlow's
    asked -= {"Steps.by_key"}
    assert not asked - calls.keys(), sorted(asked - calls.keys())


def first(batches: Any) -> Any:
    return next(iter(batches), None)


def parsed(reader: tfr.Reader, feature: Any) -> Any:
    return tfr.parse_example(reader[:], {"n": feature})


def windowed(episodes: str, **windows: Any) -> Any:
    return tfr.Steps(episodes, along="steps/", windows=windows)[:2]
