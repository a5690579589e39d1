"""Compiled sequence features: the parsed steps become padded, ragged or sparse columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tfrfast._columns.arrays import aligned_zeros, splits_of
from tfrfast._features import composed
from tfrfast._features.compiled import CompiledFeatures, NativeColumn, Slot, column_of, plan_of
from tfrfast._features.compiling import compile_features
from tfrfast._features.specs import shape_of, type_name_of, understand
from tfrfast._native import SequenceParser
from tfrfast.columns import Array, Bytes, Column, Ragged, Sparse
from tfrfast.features import Features, FixedLenSequence, VarLen

__all__ = ["CompiledSequences", "compile_sequences"]

# A sequence feature's steps, and where each row's steps start.
NativeSteps = tuple[NativeColumn, Array]


@dataclass
class CompiledSequences:
    """The descriptions of a SequenceExample in the native parser's terms."""

    context: CompiledFeatures
    slots: dict[str, Slot] = field(default_factory=dict)
    builders: dict[str, Callable[[Ragged], Column]] = field(default_factory=dict)
    parser: SequenceParser = field(init=False)

    def assemble(
        self, native: tuple[list[NativeColumn], list[NativeSteps]]
    ) -> tuple[dict[str, Column], dict[str, Column], dict[str, Array]]:
        """Context columns, sequence columns, and the lengths of the padded ones."""
        context, sequences = native
        columns: dict[str, Column] = {}
        lengths: dict[str, Array] = {}
        for (name, slot), (steps, row_splits) in zip(self.slots.items(), sequences, strict=True):
            rows = column_of(steps)
            assert isinstance(rows, Ragged)
            columns[name] = self.builders[name](Ragged(rows, row_splits))
            if slot.layout == "padded":
                lengths[name] = np.diff(row_splits)
        return self.context.assemble(context), columns, lengths


def compile_sequences(context: Features, sequences: Features) -> CompiledSequences:
    """Understands each spec and makes the parser. Raises ValueError or TypeError for a bad one."""
    compiled = CompiledSequences(compile_features(context))
    for name, given in sequences.items():
        spec = understand(name, given)
        if isinstance(spec, FixedLenSequence):
            shape = shape_of(name, spec.shape)
            kind = type_name_of(name, spec.dtype)
            compiled.slots[name] = Slot("padded", kind, shape, required=not spec.allow_missing)
            compiled.builders[name] = _padding(shape)
        elif isinstance(spec, VarLen) and spec.key in (None, name) and not spec.partitions:
            kind = type_name_of(name, spec.dtype)
            compiled.slots[name] = Slot("ragged", kind)
            compiled.builders[name] = _sparse if spec.sparse else _splitting(spec.splits_dtype)
        else:
            raise ValueError(
                f"Feature '{name}': a sequence feature is a FixedLenSequence, or a VarLen or "
                "RaggedFeature without key and partitions."
            )
    compiled.parser = SequenceParser(compiled.context.plan, plan_of(compiled.slots))
    return compiled


def _splitting(dtype: str) -> Callable[[Ragged], Column]:
    return lambda rows: composed.with_splits(rows, dtype)


def _sparse(rows: Ragged) -> Sparse:
    """The values at (row, step, position in the step)."""
    steps = rows.values
    assert isinstance(steps, Ragged)
    assert not isinstance(steps.values, Ragged)
    inner = composed.as_sparse(steps)
    row_of_step = np.repeat(np.arange(len(rows)), rows.row_lengths)
    step = inner.indices[:, 0]
    indices = aligned_zeros((len(step), 3), np.dtype(np.int64))
    indices[:, 0] = row_of_step[step]
    indices[:, 1] = step - rows.row_splits[:-1][indices[:, 0]]
    indices[:, 2] = inner.indices[:, 1]
    longest = rows.row_lengths.max(initial=0)
    shape = np.array([len(rows), longest, inner.dense_shape[1]], np.int64)
    return Sparse(indices, steps.values, shape)


def _padding(shape: tuple[int, ...]) -> Callable[[Ragged], Column]:
    """Every step has `shape`. Rows are filled up to the longest with zeros or b""."""

    def pad(rows: Ragged) -> Column:
        steps = rows.values
        assert isinstance(steps, Ragged)
        lengths = rows.row_lengths
        longest = int(lengths.max(initial=0))
        real = np.arange(longest) < lengths[:, np.newaxis]
        whole = (len(rows), longest, *shape)
        values = steps.values
        if isinstance(values, Bytes):
            sizes = np.zeros(whole, np.int64)
            sizes[real] = np.diff(values.offsets).reshape(-1, *shape)
            return Bytes(values.data, splits_of(sizes.reshape(-1)), whole)
        assert isinstance(values, np.ndarray)
        padded = aligned_zeros(whole, values.dtype)
        padded[real] = values.reshape(-1, *shape)
        return padded

    return pad
