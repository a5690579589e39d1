"""The rules by which ops on a row run on all rows of a batch. Only ops with a rule do so.

A batch has one more dimension than a row, the first. A new op needs a line in a table below, and a
rule only if no rule fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tfrfast.tensorflow import internals
from tfrfast.tensorflow.lift.copying import copied_op, needed


class NotVectorisedError(Exception):
    """An op cannot run on all rows at once."""


@dataclass(frozen=True)
class Call:
    """An op of a row, for all rows."""

    op: Any
    #: A tensor for each input: of all rows, or of a value that all rows share.
    inputs: list[Any]
    #: True for inputs that differ from row to row.
    per_row: list[bool]
    #: Booleans. If one is false, a row may fail, and the batch is invalid: its results are dropped.
    #: An op that fails on some values must not fail here, but add a condition.
    conditions: list[Any]

    def shape(self, number: int = 0) -> list[int]:
        """Returns an input's shape in a row."""
        shape = self.inputs[number].shape
        return known(shape[1:] if self.per_row[number] else shape)

    def constant(self, number: int) -> Any:
        """Returns the value of an input that is known before a run."""
        value = None if self.per_row[number] else tf.get_static_value(self.inputs[number])
        if value is None:
            raise NotVectorisedError
        return np.asarray(value)

    def allow_only(self, number: int) -> None:
        """Refuses the op if other inputs differ from row to row."""
        if any(each and place != number for place, each in enumerate(self.per_row)):
            raise NotVectorisedError

    def require(self, condition: Any) -> None:
        self.conditions.append(tf.reduce_all(condition))

    def same(self, inputs: Sequence[Any], **attributes: int) -> Sequence[Any]:
        """Returns the op's results for these inputs, with some other attributes."""
        values = {name: tf.compat.v1.AttrValue(i=value) for name, value in attributes.items()}
        outputs: Sequence[Any] = copied_op(self.op, inputs, **values).outputs
        return outputs

    def with_rows(self, row_shape: Sequence[int]) -> Any:
        """Returns the shape of a batch of such rows, as a tensor."""
        rows = self.inputs[self.per_row.index(True)]
        return tf.concat([tf.shape(rows)[:1], np.asarray(row_shape, np.int32)], 0)

    def reshaped(self, tensor: Any, row_shape: Sequence[int]) -> Any:
        """Returns the same values of each row in another shape."""
        return tf.reshape(tensor, self.with_rows(row_shape) if 0 in row_shape else [-1, *row_shape])


#: Returns the outputs of an op for all rows. Raises NotVectorisedError.
Rule = Callable[[Call], Sequence[Any]]


def known(shape: Any) -> list[int]:
    if not shape.is_fully_defined():
        raise NotVectorisedError
    sizes: list[int] = shape.as_list()
    return sizes


def _each_value(call: Call) -> Sequence[Any]:
    """The op itself. Rows are widened, so that broadcasting aligns their last dimensions."""
    shapes = [call.shape(number) for number in range(len(call.inputs))]
    rank = max(map(len, shapes))
    return call.same(
        [
            call.reshaped(each, [1] * (rank - len(shape)) + shape)
            if is_per_row and len(shape) < rank
            else each
            for each, is_per_row, shape in zip(call.inputs, call.per_row, shapes, strict=True)
        ]
    )


def _divided(call: Call) -> Sequence[Any]:
    """Division of integers by zero fails, so divisors of integers must be constants."""
    if call.inputs[0].dtype.is_integer and (call.constant(1) == 0).any():
        raise NotVectorisedError
    return _each_value(call)


def _power(call: Call) -> Sequence[Any]:
    """Negative powers of integers fail, so exponents of integers must be constants."""
    if call.inputs[0].dtype.is_integer and (call.constant(1) < 0).any():
        raise NotVectorisedError
    return _each_value(call)


#: Integers for which vector instructions and scalar instructions give different results.
_NARROW = frozenset([tf.int8, tf.int16, tf.uint8, tf.uint16, tf.uint32])


def _cast(call: Call) -> Sequence[Any]:
    """If a float does not fit into a narrow integer, the result depends on its neighbours."""
    if call.inputs[0].dtype.is_floating and call.op.outputs[0].dtype in _NARROW:
        raise NotVectorisedError
    return _each_value(call)


def _each_string(call: Call) -> Sequence[Any]:
    """The op itself. Its options, such as a pattern, are the same for all rows."""
    call.allow_only(0)
    return call.same(call.inputs)


def _find(call: Call) -> Sequence[Any]:
    call.allow_only(1)
    if not is_static_lookup(call.op, call.inputs[0]):
        raise NotVectorisedError
    return call.same(call.inputs)


def is_static_lookup(op: Any, table: Any) -> bool:
    """True if a lookup's table, a tensor that a graph captured, can never change.

    Inserts zero keys into the table. A table that can change accepts them, and a constant table
    refuses the insertion.
    """
    outside = {inner.name: outer for outer, inner in internals.captures_of(table.graph)}
    table, keys, values = outside.get(table.name), op.get_attr("Tin"), op.get_attr("Tout")
    if not hasattr(table, "numpy"):
        return False
    try:
        with tf.init_scope():
            tf.raw_ops.LookupTableInsertV2(
                table_handle=table, keys=tf.zeros([0], keys), values=tf.zeros([0], values)
            )
    except tf.errors.UnimplementedError:
        return True
    except tf.errors.OpError:
        pass
    return False


def _reshape(call: Call) -> Sequence[Any]:
    call.allow_only(0)
    before, after = call.shape(), known(call.op.outputs[0].shape)
    if math.prod(before) != math.prod(after) or (call.op.type == "EnsureShape" and before != after):
        raise NotVectorisedError
    return [call.reshaped(call.inputs[0], after)]


def _moved(axis: Any) -> Any:
    """Returns the axis of a batch for an axis of a row. An axis that counts from the end stays."""
    return np.where(axis >= 0, axis + 1, axis).astype(axis.dtype)


def _along(place: int) -> Rule:
    """An op along the axes in an input."""

    def rule(call: Call) -> Sequence[Any]:
        call.allow_only(1 - place)
        axes, inputs = call.constant(place), list(call.inputs)
        if axes.size and not call.shape(1 - place):
            raise NotVectorisedError
        inputs[place] = tf.constant(_moved(axes))
        return call.same(inputs)

    return rule


def _along_attribute(call: Call) -> Sequence[Any]:
    call.allow_only(0)
    return call.same(call.inputs, axis=_moved_attribute(call))


def _moved_attribute(call: Call) -> int:
    return int(_moved(np.asarray(call.op.get_attr("axis"))))


def _joined(call: Call) -> Sequence[Any]:
    """tf.concat and tf.stack. Parts that all rows share are repeated for each row."""
    count = call.op.get_attr("N")
    parts = [
        each if call.per_row[number] else tf.broadcast_to(each, call.with_rows(call.shape(number)))
        for number, each in enumerate(call.inputs[:count])
    ]
    if call.op.type == "Pack":
        return call.same(parts, axis=_moved_attribute(call))
    return call.same([*parts, tf.constant(_moved(call.constant(count)))])


#: The inputs with an entry for each dimension of a row, and the entry for the dimension of rows.
_ENTRIES: dict[str, dict[int, Any]] = {
    "Pad": {1: [0, 0]},
    "PadV2": {1: [0, 0]},
    "Slice": {1: 0, 2: -1},
    "StridedSlice": {1: 0, 2: 0, 3: 1},
    "Tile": {1: 1},
}
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _with_entries(call: Call) -> Sequence[Any]:
    call.allow_only(0)
    inputs, masks = list(call.inputs), {}
    for place, entry in _ENTRIES[call.op.type].items():
        values = call.constant(place)
        inputs[place] = tf.constant(np.concatenate([np.asarray([entry], values.dtype), values]))
    if call.op.type == "StridedSlice":
        masks = {name: call.op.get_attr(name) << 1 for name in _MASKS}
        masks["begin_mask"] |= 1  # all rows
        masks["end_mask"] |= 1
    return call.same(inputs, **masks)


def _transpose(call: Call) -> Sequence[Any]:
    call.allow_only(0)
    order, rank = call.constant(1), len(call.shape())
    return call.same([call.inputs[0], tf.constant([0, *(order % rank + 1)], order.dtype)])


def _gather(call: Call) -> Sequence[Any]:
    """Picks from values that all rows share, or by numbers that all rows share."""
    values, numbers, at = call.inputs
    shape, axis = call.shape(), int(call.constant(2))
    axis %= len(shape)
    count = shape[axis]
    if call.op.get_attr("batch_dims") or (axis and call.per_row[1]) or not count:
        raise NotVectorisedError
    if call.per_row[0]:
        places = call.constant(1)
        if ((places < 0) | (places >= count)).any():
            raise NotVectorisedError
        return call.same([values, numbers, tf.constant(axis + 1, at.dtype)])
    fits = tf.logical_and(numbers >= 0, numbers < tf.cast(count, numbers.dtype))
    call.require(fits)
    return call.same([values, tf.where(fits, numbers, tf.zeros_like(numbers)), at])


#: Types that are decoded from strings of a given length.
_DECODED = (
    *(tf.bfloat16, tf.float16, tf.float32, tf.float64),
    *(tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16),
)


def _decode_raw(call: Call) -> Sequence[Any]:
    """A string of another length than later ops require fails, or gives values of another shape."""
    (text,), (decoded,) = call.inputs, call.op.outputs
    strings, count = math.prod(call.shape()), _required_count(decoded)
    if decoded.dtype not in _DECODED or not strings or count is None or count % strings:
        raise NotVectorisedError
    length = count // strings * decoded.dtype.size
    call.require(tf.equal(tf.strings.length(text), length))
    if not length:
        return [tf.zeros(call.with_rows([*call.shape(), 0]), decoded.dtype)]
    is_half = decoded.dtype == tf.float16  # which TensorFlow does not decode in strings of a length
    made = tf.raw_ops.DecodePaddedRaw(
        input_bytes=text,
        fixed_length=length,
        out_type=tf.int16 if is_half else decoded.dtype,
        little_endian=call.op.get_attr("little_endian"),
    )
    return [tf.bitcast(made, tf.float16) if is_half else made]


def _required_count(tensor: Any) -> int | None:
    """Returns the number of values of a tensor, by its own shape or by the shape of an op after it
    that keeps this number.
    """
    if tensor.shape.is_fully_defined():
        return math.prod(tensor.shape.as_list())
    for op in tensor.consumers():
        others = [each for each in op.inputs if each is not tensor]
        if op.type in ("EnsureShape", "Reshape") or (
            op.type in _KEEPING and all(each.shape.rank == 0 for each in others)
        ):
            count = _required_count(op.outputs[0])
            if count is not None:
                return count
    return None


#: Ops that keep the number of values if all other inputs are single values.
_KEEPING = ("AddV2", "Cast", "Identity", "Maximum", "Minimum", "Mul", "RealDiv", "Sub")


def words(text: str) -> list[str]:
    return text.split()


#: Functions of floats that vector instructions compute by formulas of their own.
FUNCTIONS = words("""
    Acos Acosh Asin Asinh Atan Atanh Cos Cosh Elu Erf Erfc Exp Expm1 Lgamma Log Log1p Reciprocal
    Rsqrt Selu Sigmoid Sin Sinh Softplus Softsign Tan Tanh
""")
DIVISION = words("Div FloorDiv FloorMod Mod TruncateDiv TruncateMod")
_SAME_PLACE = words("""
    Abs Add AddV2 DivNoNan Mul MulNoNan Neg RealDiv Sqrt Square SquaredDifference Sub
    Bucketize Ceil Floor LeakyRelu Maximum Minimum Relu Relu6 Rint Round Sign
    Equal Greater GreaterEqual IsFinite IsInf IsNan Less LessEqual
    LogicalAnd LogicalNot LogicalOr NotEqual SelectV2
    BitwiseAnd BitwiseOr BitwiseXor Invert LeftShift PopulationCount RightShift
    Identity OnesLike StopGradient ZerosLike
""")
_STRINGS = words("""
    AsString EncodeBase64 RegexFullMatch RegexReplace StaticRegexFullMatch StaticRegexReplace
    StringLength StringLower StringStrip StringToHashBucket StringToHashBucketFast
    StringToHashBucketStrong StringUpper
""")
_ALONG_AXES = words("All Any ArgMax ArgMin EuclideanNorm Max Mean Min Prod ReverseV2 Sum")

#: Ops that compute each value from values at the same place.
ELEMENTWISE: dict[str, Rule] = {
    **dict.fromkeys([*_SAME_PLACE, *FUNCTIONS], _each_value),
    **dict.fromkeys(DIVISION, _divided),
    "Cast": _cast,
    "Pow": _power,
}
#: Ops that treat each value on its own.
OF_EACH_VALUE: dict[str, Rule] = {
    **ELEMENTWISE,
    **dict.fromkeys(_STRINGS, _each_string),
    "LookupTableFindV2": _find,
}
RULES: dict[str, Rule] = {
    **OF_EACH_VALUE,
    **dict.fromkeys(["EnsureShape", "ExpandDims", "Reshape", "Squeeze"], _reshape),
    **dict.fromkeys(_ALONG_AXES, _along(1)),
    **dict.fromkeys(["OneHot", "Unpack"], _along_attribute),
    **dict.fromkeys(["ConcatV2", "Pack"], _joined),
    **dict.fromkeys(_ENTRIES, _with_entries),
    "DecodeRaw": _decode_raw,
    "GatherV2": _gather,
    "Split": _along(0),
    "Transpose": _transpose,
}
#: Ops that may make values that all rows share: they fail on no value.
OF_SHARED = {*RULES, "Const", "Fill", "LinSpace", "Range", "Rank", "Shape", "Size"} - {
    *(*DIVISION, "DecodeRaw", "GatherV2", "LookupTableFindV2", "Pow")
}

# Ops whose floats may differ between a lifted function, which runs unchanged, and a map() of
# tf.data. There are two reasons. tf.data rewrites mapped functions: `not (a < b)` becomes `a >= b`,
# and terms and factors change places. And vector instructions compute some functions by formulas of
# their own, and add in another order.
_FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
_COMPARISONS = ("Greater", "GreaterEqual", "Less", "LessEqual")
_SUMS = {"Add", "AddN", "AddV2"}
_QUOTIENTS = {"Div", "RealDiv"}
#: Ops that tf.data replaces, or that have other formulas or another order of addition for vectors.
_DIFFERING = {
    *FUNCTIONS,
    *words("BatchMatMul BatchMatMulV2 BatchMatMulV3 Cumprod Cumsum Einsum EuclideanNorm"),
    *words("LogSoftmax MatMul Mean Pow Prod Softmax Sum"),
}
_TRANSPARENT = words("Cast EnsureShape ExpandDims Identity Reshape Squeeze StopGradient Transpose")


def differing(graph: Any, results: Sequence[Any] | None = None) -> Iterator[str]:
    """Returns the types of such ops in a function, or before some of its results."""
    for op in needed(graph, graph.outputs if results is None else results):
        if op.type == "LogicalNot":
            compared = _origin(op.inputs[0])
            if compared.type in _COMPARISONS and compared.inputs[0].dtype in _FLOATS:
                yield op.type
        elif any(each.dtype in _FLOATS for each in (*op.inputs, *op.outputs)) and (
            op.type in _DIFFERING or _is_rewritten(op)
        ):
            yield op.type
    for function in graph.as_graph_def().library.function:  # branches and loops
        yield from (node.op for node in function.node_def if node.op in _DIFFERING)


def _is_rewritten(op: Any) -> bool:
    """True if tf.data replaces an op because of its inputs."""
    kinds = [_origin(each).type for each in op.inputs]
    if op.type in _SUMS:
        is_expanded = set(kinds) == {"Mul"} or _QUOTIENTS.issuperset(kinds)
        return len(kinds) > 2 or is_expanded or not _SUMS.isdisjoint(kinds)
    if op.type in ("ArgMax", "ArgMin", "Max", "Min"):
        return kinds[0] in ELEMENTWISE and kinds[0] != "Identity"
    if op.type in _QUOTIENTS:
        return kinds[1] == "Sqrt"
    return (op.type == "Mul" and "Mul" in kinds) or (op.type == "Sub" and "Exp" in kinds)


def _origin(tensor: Any) -> Any:
    while tensor.op.type in _TRANSPARENT:
        tensor = tensor.op.inputs[0]
    return tensor.op
