"""Functions that run on whole batches, functions that do not, with the reason, and errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from hypothesis import given, settings  # noqa: E402

from random_functions import done, random_steps  # noqa: E402
from row_by_row import by_batch, by_row, graph_of, not_whole, plan, same_bits  # noqa: E402
from tfrfast.tensorflow.lift.op_rules import RULES, differing  # noqa: E402

NUMBERS = np.arange(1, 7, dtype=np.float32)
COUNTS = np.arange(-2, 4, dtype=np.int64)
GRID = np.arange(36, dtype=np.float32).reshape(6, 2, 3)
TEXTS = np.array([b"a", b"bc", b"", b"3", b"d e", b"a"], object)


def made(function: Any, *columns: Any) -> tuple[Any, bool]:
    """Returns a batch's results, and whether they are valid: valid results equal the rows' results."""
    tensors = list(map(tf.constant, columns))
    run = plan(function, tensors)
    ((outputs, holds),) = by_batch(run, tensors)
    if holds:
        for row, batch in zip(by_row(function, tensors), outputs, strict=True):
            assert (row.shape, row.dtype) == (batch.shape, batch.dtype)
            assert same_bits(row, batch).all()
    return outputs, holds


def test_what_all_rows_share_is_computed_once_and_repeated() -> None:
    weights = tf.constant([1.0, 2.0, 3.0])

    def function(x: Any) -> Any:
        return tf.sqrt(weights) * 2.0, x + tf.reduce_max(weights), tf.constant(b"same"), x

    made(function, NUMBERS)
    run = plan(function, [tf.constant(NUMBERS)])
    shared = {op.type: op.outputs[0].shape for op in run.graph.get_operations()}
    assert shared["Sqrt"] == [3]
    assert shared["Max"] == []


@pytest.mark.parametrize("text", [b"12345678", b"1234567", b"123456789", b""])
def test_strings_of_another_length_than_the_shape_says_run_singly(text: bytes) -> None:
    rows = np.array([b"abcdefgh", text, b"ABCDEFGH"], object)
    _, holds = made(lambda x: tf.reshape(tf.io.decode_raw(x, tf.int16), [2, 2]), rows)
    assert holds == (len(text) == 8)


@pytest.mark.parametrize("far", [3, -1])
def test_numbers_of_values_that_do_not_exist_make_the_rows_run_singly(far: int) -> None:
    def function(x: Any, n: Any) -> Any:
        return tf.gather([5, 6, 7], n)

    assert made(function, np.array([7, -8]), np.array([0, 2]))[1]
    assert not made(function, np.array([7, -8]), np.array([0, far]))[1]


def test_division_by_a_constant_needs_no_check() -> None:
    run = plan(lambda n: (n // 3, n % tf.constant(7, tf.int64)), [tf.constant(COUNTS)])
    assert not run.checked
    assert run.by_row is None


def asserting(x: Any) -> Any:
    tf.debugging.assert_positive(x + 9.0)
    return x


def looping(x: Any) -> Any:
    return tf.while_loop(lambda y: y < 10.0, lambda y: [y * 2.0], [x])[0]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (asserting, "If"),
        (looping, "StatelessWhile"),
        (lambda x: tf.cond(x > 2, lambda: x + 1.0, lambda: -x), "StatelessIf"),
        (lambda x: tf.constant(60) // tf.cast(x, tf.int32), "FloorDiv"),
        (lambda x: tf.cast(x, tf.uint8), "Cast"),
        (lambda x: tf.reshape(x, [1, 1]) @ tf.ones([1, 2]), "MatMul"),
        (lambda x: tf.strings.split([tf.strings.as_string(x)] * 2).values, "StringSplitV2"),
        (lambda x: tf.zeros([tf.cast(tf.abs(x), tf.int32) * 0]), "Fill"),
        (lambda x: tf.complex(x, x), "Complex"),
        (lambda x: x + tf.random.stateless_uniform([], [1, 2]), "StatelessRandom"),
        (lambda x: tf.debugging.check_numerics(x, "infinite"), "CheckNumerics"),
    ],
)
def test_other_ops_run_row_by_row(function: Any, why: str) -> None:
    assert why in not_whole(function, NUMBERS)
    assert made(function, NUMBERS)[1]


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda x, y: tf.where(tf.logical_not(x > y), 0.0, x), "LogicalNot"),
        (lambda x, y: tf.argmax(tf.nn.relu6(tf.stack([x, y]))), "ArgMax"),
        (lambda x, y: tf.exp(x), "Exp"),
        (lambda x, y: tf.nn.softmax(tf.stack([x, y])), "Softmax"),
        (lambda x, y: tf.reduce_sum(tf.stack([x, y])), "Sum"),
        (lambda x, y: x + y + 1.5, "AddV2"),
        (lambda x, y: x * (y * 0.1), "Mul"),
        (lambda x, y: x * 0.3 + y * 0.3, "AddV2"),
        (lambda x, y: x / tf.sqrt(y), "RealDiv"),
        (lambda x, y: tf.add_n([x, y, x]), "AddN"),
        (lambda x, y: tf.cond(x > y, lambda: tf.exp(y), lambda: y), "Exp"),
    ],
)
def test_ops_whose_floats_may_differ_are_known(function: Any, kind: str) -> None:
    columns = [tf.constant(NUMBERS), tf.constant(NUMBERS)]
    assert kind in differing(graph_of(function, columns))


def test_single_steps_of_arithmetic_and_integers_do_not_differ() -> None:
    def function(x: Any, n: Any) -> Any:
        return (x - 3.7) / 1.3, x / 255.0, tf.clip_by_value(x, 2.0, 3.0), n + n + n + n * 5

    made(function, NUMBERS, COUNTS)
    graph = graph_of(function, [tf.constant(NUMBERS), tf.constant(COUNTS)])
    assert not list(differing(graph))


def test_the_bytes_of_a_row_are_estimated() -> None:
    small = plan(lambda n: tf.one_hot(n, 10), [tf.constant(COUNTS)])
    large = plan(lambda n: tf.one_hot(n, 1000), [tf.constant(COUNTS)])
    assert 40 <= small.row_bytes(0) <= 400
    assert 4000 <= large.row_bytes(0) <= 12000


COLUMNS = [
    tf.constant(NUMBERS * 1.37 - 4),
    tf.constant(GRID / np.float32(7) - 2),
    tf.constant(COUNTS),
    tf.constant([[1, 2, 3]] * 6, tf.int64) * COUNTS[:, None],
    tf.constant(TEXTS),
    tf.constant([[b"1", b"22", b"-3"]] * 6),
]


def returning(steps: list[tuple[int, int, int]]) -> Any:
    return tf.autograph.experimental.do_not_convert(lambda *row: done(steps, list(row)))


@settings(max_examples=25, deadline=None)
@given(random_steps())
def test_random_functions(steps: list[tuple[int, int, int]]) -> None:
    function = returning(steps)
    run = plan(function, COLUMNS)
    try:
        (outputs, holds), (empty, _) = by_batch(run, COLUMNS, [column[:0] for column in COLUMNS])
    except tf.errors.InvalidArgumentError:  # a row fails
        assert run.by_row is not None
        return
    assert all(len(output) == 0 for output in empty)
    if holds:
        for row, batch in zip(by_row(function, COLUMNS), outputs, strict=True):
            assert (row.shape, row.dtype) == (batch.shape, batch.dtype)
            assert same_bits(row, batch).all()
    else:
        assert run.checked


def ops_on_the_page(start: str, end: str) -> set[str]:
    page = Path(__file__).resolve().parents[3] / "docs" / "vectorising.md"
    if not page.exists():
        pytest.skip("run this in a checkout")
    part = page.read_text(encoding="utf-8").partition(start)[2].partition(end)[0]
    return set(re.findall(r"`([A-Z]\w+)`", part))


def test_the_page_lists_each_op_that_has_a_rule() -> None:
    assert ops_on_the_page("| kind | ops |", "`tf.io.parse_tensor`") == {*RULES, "ParseTensor"}
