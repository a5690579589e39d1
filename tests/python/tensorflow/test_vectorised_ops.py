"""Each vectorised op gives each row the result that the op gives for the row alone.

Rows are of random values, among them NaN, infinities, numbers of the smallest and largest size,
and strings of all kinds.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python.framework import op_def_registry  # noqa: E402

from row_by_row import by_batch, by_row, graph_of, plan, same_bits  # noqa: E402
from tfrfast.tensorflow.lift.op_rules import (  # noqa: E402
    DIVISION,
    ELEMENTWISE,
    FUNCTIONS,
    RULES,
    differing,
)

ROWS = 67
# A zero may get the other sign, and a number too small for all its digits become 0.
TINY = {"Max", "Maximum", "Min", "Minimum", "Relu", "Relu6", "Sign"}
FLOATS = [tf.float16, tf.bfloat16, tf.float32, tf.float64]
SIGNED = [tf.int8, tf.int16, tf.int32, tf.int64]
INTEGERS = [*SIGNED, tf.uint8, tf.uint16, tf.uint32, tf.uint64]
DTYPES = [*FLOATS, *INTEGERS, tf.bool, tf.string]
# A kernel is one template for many types, so a few types stand for all types. Other TensorFlow
# versions test even fewer types.
IS_NEW = tuple(map(int, tf.__version__.split(".")[:2])) >= (2, 20)
SOME_DTYPES = [tf.float32, tf.int64, tf.bool, tf.string]
if IS_NEW:
    SOME_DTYPES += [tf.bfloat16, tf.int32, tf.uint8]
EPSILON = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1.2e-7, "float64": 2.3e-16}
TEXTS = [b"", b"a", b"Abc de", b" \xff\x00z ", b"12", "ä".encode(), b"abcabc", b"-7"]


def values(dtype: Any, shape: list[int], rows: int = ROWS, seed: int = 0) -> Any:
    random = np.random.default_rng([seed, rows, *shape])
    size = (rows, *shape)
    if dtype == tf.bool:
        return tf.constant(random.integers(0, 2, size) > 0)
    if dtype == tf.string:
        return tf.constant(random.choice(np.array(TEXTS, object), size), tf.string)
    if dtype.is_integer:
        limits = np.iinfo(dtype.as_numpy_dtype)
        extremes = [limits.min, limits.max, limits.min + 1, limits.max - 1, 0, 1, 2, 31]
        extreme = random.choice(np.array(extremes, dtype.as_numpy_dtype), size)
        small = random.integers(max(limits.min, -100), min(limits.max, 100), size)
        return tf.constant(np.where(random.random(size) < 0.5, extreme, small), dtype)
    kind = np.float64 if dtype == tf.float64 else np.float32
    limits = np.finfo(kind)
    special = [np.nan, np.inf, -np.inf, 0, -0.0, 1, -1, 0.5, 1.5, 2.5, 2, 255, 256, 2**31]
    special += [limits.tiny, limits.tiny / 8, limits.max, -limits.max]
    usual = random.standard_normal(size) * 10.0 ** random.integers(-3, 4, size)
    rare = random.choice(np.array(special, kind), size)
    return tf.cast(tf.constant(np.where(random.random(size) < 0.2, rare, usual), kind), dtype)


def check(function: Callable[..., Any], columns: list[Any], kind: str | None = None) -> None:
    """Compares the outputs of the batch with those of its rows, for all rows, one, and none."""
    run = plan(function, columns)
    assert run.by_row is None, run.kinds
    kinds = {op.type for op in graph_of(function, columns).get_operations()}
    rounds = any(differing(graph_of(function, columns)))
    tiny = not TINY.isdisjoint(kinds)
    assert kind is None or kind in kinds
    expected = by_row(function, columns)
    (some, counts), (one, _), (none, _) = by_batch(
        run, columns, [column[:1] for column in columns], [column[:0] for column in columns]
    )
    assert counts
    for by_rows, *made in zip(expected, some, one, none, strict=True):
        for rows, batch in zip((None, 1, 0), made, strict=True):
            row = by_rows[:rows]
            assert (batch.shape, batch.dtype) == (row.shape, row.dtype)
            same = same_bits(row, batch)
            if row.dtype.kind not in "biuO":
                same |= close(row, batch) if rounds else tiny & both_tiny(row, batch)
            assert same.all(), (row[~same][:4], batch[~same][:4])


def close(expected: Any, made: Any) -> Any:
    """Whether floats differ in their last bits at most."""
    few = 64 * EPSILON[expected.dtype.name]
    return np.isclose(made.astype("f8"), expected.astype("f8"), rtol=few, atol=few)


def both_tiny(expected: Any, made: Any) -> Any:
    limit = 1e-37 if expected.dtype != np.float64 else 1e-307
    return (np.abs(expected.astype("f8")) < limit) & (np.abs(made.astype("f8")) < limit)


# The shapes of the inputs, by the number of inputs. Broadcasting is the most likely place of
# errors. One rule widens rows for all ops, so a few ops get all shapes, and the other ops get two
# shapes.
SHAPES = {
    1: [([],), ([5],), ([2, 0],)],
    2: [([], []), ([2, 3], [3]), ([3], []), ([], [3]), ([2, 1], [1, 3]), ([3], [2, 3])],
    3: [([], [], []), ([], [3], [3]), ([3], [2, 3], []), ([2, 1], [], [3])],
}
WITH_ALL_SHAPES = ["Abs", "AddV2", "FloorDiv", "SelectV2"]


def elementwise(kind: str, dtype: Any, **options: Any) -> tuple[Any, list[Any]] | None:
    """A function that applies the op to inputs of many shapes, and columns for it.

    One input of each op is also given as the same for all rows. None if the op has no such kernel.
    """
    definition = op_def_registry.get(kind)
    names = list(inspect.signature(getattr(tf.raw_ops, kind)).parameters)
    names = names[: len(definition.input_arg)]
    count = len(names)
    columns, calls = [], []
    for layout in SHAPES[count][: None if kind in WITH_ALL_SHAPES else 2]:
        first = len(columns)
        for number, shape in enumerate(layout):
            is_condition = kind == "SelectV2" and number == 0
            columns.append(values(tf.bool if is_condition else dtype, shape, seed=number))
        calls.append(slice(first, first + count))

    def apply(inputs: Any) -> Any:
        op = getattr(tf.raw_ops, kind)
        return op(**dict(zip(names, inputs, strict=True)), **options)

    if dtype.is_floating and kind in {*FUNCTIONS, "Pow"}:
        tiniest = 1e-300 if dtype == tf.float64 else 1e-37
        columns = [
            tf.where(tf.abs(c) < tf.cast(tiniest, dtype), tf.zeros_like(c), c) for c in columns
        ]
    constants = [column[3] for column in columns]

    def function(*row: Any) -> Any:
        outputs = []
        for call in calls:
            inputs = list(row[call])
            outputs.append(apply(inputs))
            for shared in range(count if count > 1 else 0):
                mixed = [
                    own if number != shared else constants[call][number]
                    for number, own in enumerate(inputs)
                ]
                outputs.append(apply(mixed))
        return outputs

    try:
        apply(constants[calls[0]])
    except (TypeError, ValueError, tf.errors.OpError):
        return None
    return function, columns


# Options without which ops cannot be made.
OPTIONS: dict[str, dict[str, Any]] = {"Bucketize": {"boundaries": [-3.0, 0.5, 2.0, 1e9]}}


@pytest.mark.parametrize("kind", sorted({*ELEMENTWISE} - {"Cast", "Pow"}))
def test_values_at_the_same_place(kind: str) -> None:
    cases = [
        case
        for dtype in SOME_DTYPES
        if not (kind in DIVISION and dtype.is_integer)
        and (case := elementwise(kind, dtype, **OPTIONS.get(kind, {}))) is not None
    ]
    assert cases
    ends = np.cumsum([len(columns) for _, columns in cases]).tolist()
    parts = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    def function(*row: Any) -> Any:
        return [case(*row[part]) for (case, _), part in zip(cases, parts, strict=True)]

    check(function, [column for _, columns in cases for column in columns], kind)


NARROW = [tf.int8, tf.int16, tf.uint8, tf.uint16, tf.uint32]


@pytest.mark.parametrize("dtype", [each for each in DTYPES if each != tf.string], ids=repr)
def test_casts(dtype: Any) -> None:
    others = [each for each in DTYPES if each not in (dtype, tf.string)]
    if dtype.is_floating:
        others = [each for each in others if each not in NARROW]
    columns = [values(dtype, shape) for shape in ([], [5], [33])]
    fitting = [fits(column, other) for other in others for column in columns]

    def function(*row: Any) -> Any:
        return [tf.cast(each, others[number // 3]) for number, each in enumerate(row)]

    check(function, fitting, "Cast")


def fits(column: Any, dtype: Any) -> Any:
    """The column without floats that are too large for an integer type."""
    if not (column.dtype.is_floating and dtype.is_integer and dtype.size <= 4):
        return column
    wide = tf.cast(column, tf.float64)
    fit = (wide > dtype.min - 1.0) & (wide < dtype.max + 1.0)
    return tf.where(fit, column, tf.ones_like(column))


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.int32, tf.int64], ids=repr)
def test_powers(dtype: Any) -> None:
    columns = [values(dtype, []), values(dtype, [5])]
    check(lambda x, y: [x**2, y**2, x**3, y ** tf.constant([0, 1, 2, 3, 4], dtype)], columns)


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64], ids=repr)
def test_divisions_of_integers(dtype: Any) -> None:
    divisors = [tf.constant(7, dtype), tf.constant([1, -2, 3, 5, -9], dtype)]
    kinds = [getattr(tf.raw_ops, kind) for kind in DIVISION]

    def function(x: Any, y: Any) -> Any:
        return [op(x=each, y=by) for op in kinds for each in (x, y) for by in divisors]

    check(function, [values(dtype, []), values(dtype, [5])])


F32, I64, I32, STR = tf.float32, tf.int64, tf.int32, tf.string
TABLE = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer([b"a", b"12", b""], [5, 6, 7]), -1
)
FIXED = tf.constant([[1.5, 2.5], [3.5, 4.5], [5.5, 6.5]])
RAW = tf.constant([bytes([k, 255 - k, 1, 2, 128, 127, 64, 63] * 2) for k in range(ROWS)])
DECODED = [
    *(tf.uint8, tf.int8, tf.int16, tf.uint16, tf.int32, tf.int64),
    *(tf.bfloat16, tf.float16, F32, tf.float64),
]


def where(*columns: Any) -> list[Any]:
    return [
        values(dtype, list(shape), seed=number) for number, (dtype, *shape) in enumerate(columns)
    ]


# The other ops: a function that uses the op, and its columns.
CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "ConcatV2": (
        lambda x, y: [
            tf.concat([x, y], 0),
            tf.concat([x, x], 1),
            tf.concat([y, x], -2),
            tf.concat([FIXED, x], 0),
            tf.concat([x, FIXED[:1] * 2], 0),
        ],
        where((F32, 3, 2), (F32, 1, 2)),
    ),
    "EnsureShape": (lambda x: tf.ensure_shape(x, [3, None]), where((I64, 3, 2))),
    "ExpandDims": (
        lambda x, y: [tf.expand_dims(x, 0), tf.expand_dims(x, -1), tf.expand_dims(y, -3)],
        where((STR,), (F32, 2, 3)),
    ),
    "OneHot": (
        lambda x, y: [
            tf.one_hot(x, 3),
            tf.one_hot(y, 40, True, False, axis=0, dtype=tf.bool),
            tf.one_hot(y, 2, on_value=tf.constant(2.5), off_value=tf.constant(-1.0), axis=1),
            tf.one_hot(tf.cast(x, tf.uint8), 0, axis=-1),
        ],
        where((I64,), (I32, 2, 3)),
    ),
    "Pack": (
        lambda x, y: [
            tf.stack([x, y]),
            tf.stack([y, y], 1),
            tf.stack([y, FIXED[0], y], -1),
            tf.stack([y, x], -2),
        ],
        where((F32, 2), (F32, 2)),
    ),
    "Pad": (lambda x: tf.pad(x, [[1, 0], [0, 2]]), where((I32, 3, 4))),
    "PadV2": (
        lambda x, y: [
            tf.pad(x, [[1, 0], [0, 2]], constant_values=7),
            tf.pad(y, [[2, 1]], constant_values="x"),
        ],
        where((I32, 3, 4), (STR, 2)),
    ),
    "Reshape": (
        lambda x, y: [
            tf.reshape(x, [3, 2]),
            tf.reshape(x, [-1]),
            tf.reshape(y, [1, 1]),
            tf.reshape(x[:, :0], [0, 5]),
        ],
        where((F32, 2, 3), (STR,)),
    ),
    "ReverseV2": (
        lambda x: [tf.reverse(x, [0]), tf.reverse(x, [-1]), tf.reverse(x, [1, 0])],
        where((I64, 2, 3)),
    ),
    "Slice": (
        lambda x: [tf.slice(x, [1, 0], [1, 2]), tf.slice(x, [0, 1], [-1, 2])],
        where((STR, 2, 3)),
    ),
    "Split": (
        lambda x: [tf.split(x, 2, 0), tf.split(x, 3, -1)],
        where((F32, 2, 3)),
    ),
    "Squeeze": (
        lambda x: [tf.squeeze(x), tf.squeeze(x, 0), tf.squeeze(x, [-1])],
        where((STR, 1, 3, 1)),
    ),
    "StridedSlice": (
        lambda x, y: [
            x[0],
            x[..., 1],
            x[-1:, ::2],
            x[:, tf.newaxis, 1:],
            x[::-1],
            x[..., tf.newaxis],
            y[1:3],
            y[-1],
            y[4:2],
        ],
        where((F32, 2, 3), (STR, 5)),
    ),
    "Tile": (lambda x, y: [tf.tile(x, [2, 1]), tf.tile(y, [0])], where((STR, 1, 3), (I64, 2))),
    "Transpose": (
        lambda x: [tf.transpose(x), tf.transpose(x, [1, 0, 2]), tf.transpose(x, [2, 0, 1])],
        where((F32, 2, 3, 4)),
    ),
    "Unpack": (
        lambda x: [tf.unstack(x), tf.unstack(x, axis=1), tf.unstack(x, axis=-1)],
        where((F32, 2, 3)),
    ),
    "GatherV2": (
        lambda x, i: [
            tf.gather(x, [1, 0, 1]),
            tf.gather(x, [2], axis=1),
            tf.gather(x, 0, axis=-1),
            tf.gather(FIXED, i),
        ],
        [*where((F32, 2, 3)), tf.abs(values(I32, [4]) // 2) % 3],
    ),
    "RegexFullMatch": (
        lambda x: tf.raw_ops.RegexFullMatch(input=x, pattern="[a-z]+"),
        where((STR, 3)),
    ),
    "RegexReplace": (
        lambda x: tf.raw_ops.RegexReplace(input=x, pattern="b.", rewrite="_"),
        where((STR, 3)),
    ),
    "StaticRegexFullMatch": (lambda x: tf.strings.regex_full_match(x, "a.*"), where((STR, 3))),
    "StaticRegexReplace": (
        lambda x: [
            tf.strings.regex_replace(x, "[ab]", "<\\0>"),
            tf.strings.regex_replace(x, "c", "", replace_global=False),
        ],
        where((STR, 3)),
    ),
    "LookupTableFindV2": (lambda x, y: [TABLE.lookup(x), TABLE[y]], where((STR,), (STR, 3))),
    "DecodeRaw": (
        lambda x: [
            *(tf.reshape(tf.io.decode_raw(x, dtype), [16 // dtype.size, 1]) for dtype in DECODED),
            tf.reshape(tf.cast(tf.io.decode_raw(x, tf.uint8), F32) / 255.0 - 0.5, [4, 4]),
            tf.reshape(tf.io.decode_raw(x, tf.int32, little_endian=False), [2, 2]),
        ],
        [RAW],
    ),
    "AsString": (
        lambda x, y, z: [tf.strings.as_string(x, 3), *map(tf.strings.as_string, (x, y, z))],
        where((F32, 3), (I64,), (tf.bool, 2)),
    ),
}
KEEP = [False, True]
AXES = [[0], [1], [-1], [0, 1], [], [-2]]
NAMES = {"All": tf.bool, "Any": tf.bool}
for name in ("All", "Any", "Max", "Min", "Mean", "Prod", "Sum", "EuclideanNorm"):
    dtypes = [tf.bool] if name in NAMES else [F32, I32, I64, tf.float64, tf.float16]

    def reduce(*row: Any, kind: str = name) -> list[Any]:
        return [
            getattr(tf.raw_ops, kind)(input=x, axis=axes, keep_dims=k)
            for x in row
            for axes in AXES
            for k in KEEP
        ]

    CASES[name] = (reduce, where(*((dtype, 5, 9) for dtype in dtypes)))
for name in ("ArgMax", "ArgMin"):

    def arg(*row: Any, kind: str = name) -> list[Any]:
        return [
            getattr(tf.raw_ops, kind)(input=x, dimension=axis) for x in row for axis in (0, 1, -1)
        ]

    CASES[name] = (arg, where((F32, 3, 4), (I64, 3, 4)))
for name in ("StringLength", "StringLower", "StringUpper", "StringStrip", "EncodeBase64"):

    def of_strings(*row: Any, kind: str = name) -> list[Any]:
        return [getattr(tf.raw_ops, kind)(input=x) for x in row]

    CASES[name] = (of_strings, where((STR,), (STR, 3)))
CASES["StringToHashBucket"] = (
    lambda *row: [tf.raw_ops.StringToHashBucket(string_tensor=x, num_buckets=1000) for x in row],
    where((STR,), (STR, 3)),
)
CASES["StringToHashBucketFast"] = (
    lambda *row: [tf.strings.to_hash_bucket_fast(x, 1000) for x in row],
    where((STR,), (STR, 3)),
)
CASES["StringToHashBucketStrong"] = (
    lambda *row: [tf.strings.to_hash_bucket_strong(x, 1000, [1, 2]) for x in row],
    where((STR,), (STR, 3)),
)


@pytest.mark.parametrize("kind", sorted(CASES))
def test_other_ops(kind: str) -> None:
    check(*CASES[kind], kind)


def test_every_op_with_a_rule_is_tested() -> None:
    assert set(RULES) == {*ELEMENTWISE, *CASES}
