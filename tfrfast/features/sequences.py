"""Compiled sequence features: the parsed steps become padded, ragged or sparse columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tfrfast._native import SequenceParser
from tfrfast.columns import Array, Bytes, Column, Ragged, Sparse
from tfrfast.columns.arrays import aligned_zeros, check_padded, splits_of
from tfrfast.errors import FeatureError
from tfrfast.features import Features, FixedLenSequence, Image, VarLen, composed
from tfrfast.features.compiled import CompiledFeatures, NativeColumn, Slot, column_of, schema_of
from tfrfast.features.compiling import compile_features, partition_keys
from tfrfast.features.specs import shape_of, type_name_of, understand

__all__ = ["CompiledSequences", "compile_sequences"]

# A sequence feature's steps, and the start of each row's steps.
NativeSteps = tuple[NativeColumn, Array]


@dataclass
class CompiledSequences:
    """The descriptions of a SequenceExample in the native parser's terms."""

    context: CompiledFeatures
    slots: dict[str, Slot] = field(default_factory=dict)
    builders: dict[str, Callable[[dict[str, Ragged]], Column]] = field(default_factory=dict)
    parser: SequenceParser = field(init=False)

    def assemble(
        self, native: tuple[list[NativeColumn], list[NativeSteps]]
    ) -> tuple[dict[str, Column], dict[str, Column], dict[str, Array]]:
        """Returns context columns, sequence columns, and the lengths of the padded columns."""
        context, sequences = native
        parsed: dict[str, Ragged] = {}
        lengths: dict[str, Array] = {}
        for (key, slot), (steps, row_splits) in zip(self.slots.items(), sequences, strict=True):
            rows = column_of(steps)
            assert isinstance(rows, Ragged)
            parsed[key] = Ragged(rows, row_splits)
            if slot.layout == "padded":
                lengths[key] = np.diff(row_splits)
        columns = {name: build(parsed) for name, build in self.builders.items()}
        return self.context.assemble(context), columns, lengths

    def want(self, key: str, slot: Slot) -> None:
        """Adds a list of the record. Several columns may be made from it."""
        if self.slots.setdefault(key, slot) != slot:
            raise ValueError(f"Feature '{key}' is requested in two ways that do not agree.")


def compile_sequences(context: Features, sequences: Features) -> CompiledSequences:
    """Compiles each spec and makes the parser. Raises ValueError or TypeError for a bad spec."""
    for name, given in [*context.items(), *sequences.items()]:
        if isinstance(given, Image):
            raise ValueError(f"Feature {name!r}: an Image is a feature of an Example.")
    compiled = CompiledSequences(compile_features(context))
    for name, given in sequences.items():
        spec = understand(name, given)
        if isinstance(spec, FixedLenSequence):
            shape = shape_of(name, spec.shape)
            kind = type_name_of(name, spec.dtype)
            compiled.want(name, Slot("padded", kind, shape, required=not spec.allow_missing))
            compiled.builders[name] = _padding(name, shape)
        elif isinstance(spec, VarLen) and not (spec.sparse and spec.partitions):
            key = name if spec.key is None else spec.key
            compiled.want(key, Slot("ragged", type_name_of(name, spec.dtype)))
            for partition_key in partition_keys(name, spec):
                compiled.want(partition_key, Slot("ragged", "int64"))
            compiled.builders[name] = _sparse(key) if spec.sparse else _dividing(name, key, spec)
        else:
            raise ValueError(
                f"Feature {name!r}: a sequence feature is a FixedLenSequence, a VarLen or a "
                "RaggedFeature. Sparse columns have no partitions."
            )
    compiled.parser = SequenceParser(compiled.context.schema, schema_of(compiled.slots))
    return compiled


def _dividing(name: str, key: str, spec: VarLen) -> Callable[[dict[str, Ragged]], Column]:
    """Divides each step by the same step of the features that the partitions name."""

    def divide(parsed: dict[str, Ragged]) -> Column:
        rows = parsed[key]
        for other in partition_keys(name, spec):
            different = np.flatnonzero(parsed[other].row_splits != rows.row_splits)
            if len(different):
                row = int(different[0]) - 1
                raise FeatureError(
                    f"Feature {name!r}: row {row} does not have as many steps of {other!r} as of "
                    f"'{key}'. Each step needs a step that divides it.",
                    record=row,
                )
        steps = {each: column.values for each, column in parsed.items()}
        try:
            divided = composed.divide(steps[key], spec.partitions, steps)
        except composed.Indivisible as found:
            row = int(np.searchsorted(rows.row_splits, found.row, side="right")) - 1
            step = found.row - int(rows.row_splits[row])
            raise FeatureError(
                f"Feature {name!r}: step {step} of row {row} cannot be divided: {found.why}.",
                record=row,
            ) from None
        return composed.with_splits(Ragged(divided, rows.row_splits), spec.splits_dtype)

    return divide


def _sparse(key: str) -> Callable[[dict[str, Ragged]], Column]:
    return lambda parsed: _as_sparse(parsed[key])


def _as_sparse(rows: Ragged) -> Sparse:
    """Returns the values at (row, step, position in the step)."""
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


def _padding(key: str, shape: tuple[int, ...]) -> Callable[[dict[str, Ragged]], Column]:
    """Fills rows up to the longest row with zeros or b"". Every step has `shape`."""

    def pad(parsed: dict[str, Ragged]) -> Column:
        rows = parsed[key]
        steps = rows.values
        assert isinstance(steps, Ragged)
        lengths = rows.row_lengths
        longest = int(lengths.max(initial=0))
        whole = (len(rows), longest, *shape)
        values = steps.values
        check_padded(whole, values.itemsize if isinstance(values, np.ndarray) else 8)
        real = np.arange(longest) < lengths[:, np.newaxis]
        if isinstance(values, Bytes):
            sizes = np.zeros(whole, np.int64)
            sizes[real] = np.diff(values.offsets).reshape(-1, *shape)
            return Bytes(values.data, splits_of(sizes.reshape(-1)), whole)
        assert isinstance(values, np.ndarray)
        padded = aligned_zeros(whole, values.dtype)
        padded[real] = values.reshape(-1, *shape)
        return padded

    return pad
