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
from row_by_row import by_batch, by_row, plan, refusal, rest_of, same_bits  # noqa: E402
from tfrfast.tensorflow.lifting.arithmetic import differing  # noqa: E402
from tfrfast.tensorflow.lifting.rules.table import RULES  # noqa: E402
from tfrfast.tensorflow.lifting.vectorised import Vectorised  # noqa: E402

NUMBERS = np.arange(1, 7, dtype=np.float32)
COUNTS = np.arange(-2, 4, dtype=np.int64)
GRID = np.arange(36, dtype=np.float32).reshape(6, 2, 3)
TEXTS = np.array([b"a", b"bc", b"", b"3", b"d e", b"a"], object)


def made(function: Any, *columns: Any, **options: bool) -> tuple[Any, bool]:
    """Returns a batch's results, and whether they are valid: valid results equal the rows' results."""
    tensors = list(map(tf.constant, columns))
    run = plan(function, tensors, **{"checked": True} | options)
    assert isinstance(run, Vectorised), run.why
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
    assert isinstance(run, Vectorised)
    shared = [op.type for op, _ in run.steps if op.outputs[0].name not in run.per_row]
    assert "Sqrt" in shared
    assert "Max" in shared


def test_an_input_that_is_returned_is_the_very_column() -> None:
    run = plan(lambda x, y: (y, x), [tf.constant(NUMBERS), tf.constant(TEXTS)])
    assert isinstance(run, Vectorised)
    with tf.Graph().as_default():
        columns = [object(), object()]
        outputs, holds = run(columns)
    assert outputs == columns[::-1]
    assert holds is None


def test_rows_are_aligned_when_their_shapes_differ() -> None:
    made(
        lambda x, grid: (x * grid, grid - x, grid[0] + grid, tf.where(x > 3, grid, x)),
        NUMBERS,
        GRID,
    )


@pytest.mark.parametrize("text", [b"12345678", b"1234567", b"123456789", b""])
def test_strings_of_another_length_than_the_shape_says_run_singly(text: bytes) -> None:
    rows = np.array([b"abcdefgh", text, b"ABCDEFGH"], object)
    _, holds = made(lambda x: tf.reshape(tf.io.decode_raw(x, tf.int16), [2, 2]), rows)
    assert holds == (len(text) == 8)


@pytest.mark.parametrize(
    ("function", "good", "bad"),
    [
        (lambda x, n: x // n, [1, 2], [1, 0]),
        (lambda x, n: x % n, [-1, 2], [0, 2]),
        (lambda x, n: tf.gather([5, 6, 7], n), [0, 2], [0, 3]),
        (lambda x, n: tf.gather([5, 6, 7], n), [1, 2], [-1, 2]),
        (lambda x, n: tf.gather_nd([[5, 6, 7]], tf.stack([n * 0, n])), [0, 2], [0, 3]),
        (lambda x, n: tf.gather_nd(tf.stack([x, n]), [n]), [0, 1], [0, -1]),
        (lambda x, n: tf.cast(tf.cast(n, tf.float32) * 1.5, tf.uint8), [0, 170], [0, 171]),
        (lambda x, n: tf.cast(tf.cast(n, tf.float32) * 0.7, tf.int8), [-184, 1], [-185, 1]),
    ],
)
def test_values_on_which_an_op_fails_make_the_rows_run_singly(
    function: Any, good: list[int], bad: list[int]
) -> None:
    x = np.array([7, -8])
    assert made(function, x, np.array(good))[1]
    assert not made(function, x, np.array(bad))[1]
    assert "fails on some values" in refusal(function, x, np.array(good))


@pytest.mark.parametrize("bad", [b"", b"x", b"1e", b"0x10", b"+1", b"1 2", b"99999999999", b"1.5"])
def test_texts_that_may_not_be_numbers_make_the_rows_run_singly(bad: bytes) -> None:
    def function(text: Any) -> Any:
        return tf.strings.to_number(text, tf.int32)

    assert made(function, np.array([b"1", b"-20"], object))[1]
    assert not made(function, np.array([b"1", bad], object))[1]


def test_sizes_that_are_computed_of_constants_are_known() -> None:
    def function(grid: Any) -> Any:
        image = grid[..., tf.newaxis]
        larger = tf.image.resize_with_crop_or_pad(image, 4, 5)
        return (
            larger,
            tf.image.resize_with_crop_or_pad(larger, 1, 3),
            tf.image.central_crop(larger, 0.5),
        )

    assert made(function, GRID)[1]


def test_numbers_are_written_in_many_ways() -> None:
    texts = [b"1e-05", b" 2.5", b"+3.\t", b"nan", b"-inf", b"1E+300", b"4e-320", b"9" * 30]
    assert made(tf.strings.to_number, np.array(texts, object))[1]
    assert not made(tf.strings.to_number, np.array([b"1", b"9" * 31], object))[1]


@pytest.mark.parametrize(("at", "bad"), [(1, b""), (3, b"ab"), (-2, b"x")])
def test_positions_that_a_string_lacks_make_the_rows_run_singly(at: int, bad: bytes) -> None:
    def function(text: Any) -> Any:
        return tf.strings.substr(text, at, 2)

    assert made(function, np.array([b"abc", b"defgh"], object))[1]
    assert not made(function, np.array([b"abc", bad], object))[1]


def test_division_by_a_constant_needs_no_check() -> None:
    run = plan(lambda n: (n // 3, n % tf.constant(7, tf.int64)), [tf.constant(COUNTS)])
    assert isinstance(run, Vectorised)
    assert not run.checked
    assert "FloorDiv" in refusal(lambda n: n // tf.constant(0, tf.int64), COUNTS)


VARIABLE = tf.Variable(1.0)
STATIC = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([b"a"], [1]), -1)
MUTABLE = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
DENSE = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, -2, -3)


def printing(x: Any) -> Any:
    tf.print(x)
    return x


def branching(x: Any) -> Any:
    return tf.cond(x > 2, lambda: x, lambda: tf.reduce_sum(tf.reshape(x, [1, 1]) @ [[3.0]]))


def test_rows_choose_between_branches() -> None:
    words = tf.constant([b"some", b"word"])

    def function(x: Any, grid: Any, n: Any) -> Any:
        even = tf.equal(n % 2, 0)
        doubled, name = tf.cond(even, lambda: (grid * 2.0, words), lambda: (-grid, words[::-1]))
        nested = tf.cond(x > 3, lambda: n + 1, lambda: tf.cond(even, lambda: n, lambda: -n))
        return doubled, name, nested, tf.cond(even, lambda: 1.5, lambda: 2.5)

    _, holds = made(function, NUMBERS, GRID, COUNTS)
    assert holds
    run = plan(function, [tf.constant(each) for each in (NUMBERS, GRID, COUNTS)])
    assert isinstance(run, Vectorised)


def test_a_branch_fails_only_for_the_rows_that_take_it() -> None:
    def function(n: Any) -> Any:
        def inner() -> Any:
            return tf.cond(n > 1, lambda: tf.gather([5, 6], n - 2), lambda: tf.cast(6 // n, I32))

        return tf.cond(tf.equal(n, 0), lambda: -1, inner)

    assert made(function, np.array([0, 3, 1, -2, 2]))[1]
    assert not made(function, np.array([0, 3, 1, -2, 4]))[1]
    assert "fails on some values" in refusal(function, COUNTS)


def test_what_all_rows_share_fails_only_where_a_row_takes_that_branch() -> None:
    def function(n: Any) -> Any:
        zero, far = tf.constant([0, 1], tf.int64), tf.constant([1, 7])
        divided = tf.cond(n > 0, lambda: n * zero, lambda: n // zero)
        return divided, tf.cond(n > 0, lambda: far, lambda: tf.gather([5, 6], far))

    assert made(function, np.array([1, 3]))[1]
    assert not made(function, np.array([1, -3]))[1]


@pytest.mark.parametrize("is_set", [False, True])
def test_what_all_rows_share_decides_for_all_of_them(is_set: bool) -> None:
    flag = tf.constant(is_set)

    def function(x: Any) -> Any:
        tf.debugging.Assert(flag, ["not set"])
        return tf.cond(flag, lambda: x + 1.0, lambda: x)

    assert made(function, NUMBERS)[1] == is_set


def test_a_branch_with_an_effect_or_a_variable_is_not_run_for_other_rows() -> None:
    for branch in (lambda x: x + VARIABLE, printing):

        def function(x: Any, branch: Any = branch) -> Any:
            return tf.cond(x > 2.0, lambda: x, lambda: branch(x))

        assert "chooses what to run" in refusal(function, NUMBERS, checked=True)


I32 = tf.int32


def asserting(n: Any) -> Any:
    tf.debugging.assert_positive(n, "positive")
    return n + 1


def asserting_a_text(n: Any) -> Any:
    tf.debugging.Assert(n > 0, ["some text", tf.strings.as_string(n)])
    return n


def waiting(n: Any) -> Any:
    with tf.control_dependencies([tf.debugging.assert_positive(n)]):
        return tf.identity(n)


def waiting_for_what_may_fail(n: Any) -> Any:
    with tf.control_dependencies([1 // (n - 1)]):
        return n + 1


def asserting_in_a_branch(n: Any) -> Any:
    def more() -> Any:
        tf.debugging.assert_none_equal(n, tf.constant(0, n.dtype))
        return n * 2

    return tf.cond(n < 5, more, lambda: n)


def finite(n: Any) -> Any:
    return tf.debugging.check_numerics(1.0 / tf.cast(n, tf.float32), "infinite")


def all_finite(n: Any) -> Any:
    x = tf.stack([1.0, 1.0 / tf.cast(n, tf.float32)])
    tf.debugging.assert_all_finite(x, "infinite")
    return x


@pytest.mark.parametrize(
    ("function", "bad"),
    [
        (asserting, 0),
        (asserting_a_text, 0),
        (waiting, 0),
        (waiting_for_what_may_fail, 1),
        (asserting_in_a_branch, 0),
        (finite, 0),
        (all_finite, 0),
    ],
)
def test_what_is_asserted_is_checked_for_all_rows(function: Any, bad: int) -> None:
    assert made(function, np.array([3, 7, 2]))[1]
    assert not made(function, np.array([3, 7, bad]))[1]
    assert "fails on some values" in refusal(function, COUNTS)


@pytest.mark.parametrize("bad", ["", "x", "header", "short", "long", "type", "shape"])
def test_tensors_of_another_shape_or_type_run_singly(bad: str) -> None:
    good = tf.io.serialize_tensor(tf.constant([[1.5, 2.5]])).numpy()
    others = {
        "header": bytes([good[0] ^ 1]) + good[1:],
        "short": good[:-1],
        "long": good + b"x",
        "type": tf.io.serialize_tensor(tf.constant([[1, 2]])).numpy(),
        "shape": tf.io.serialize_tensor(tf.constant([1.5, 2.5])).numpy(),
    }

    def function(text: Any) -> Any:
        return tf.ensure_shape(tf.io.parse_tensor(text, tf.float32), [1, 2])

    assert made(function, np.array([good, good], object))[1]
    assert not made(function, np.array([good, others.get(bad, bad.encode())], object))[1]


def looping(x: Any) -> Any:
    return tf.while_loop(lambda y: y < 10.0, lambda y: [y * 2.0], [x])[0]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: x + tf.random.uniform([]), "other random numbers"),
        (lambda x: x + tf.random.uniform([], seed=1), "other random numbers"),
        (lambda x: x + tf.random.stateless_uniform([], [1, 2]), "Stateless"),
        (lambda x: x + VARIABLE, "may change between two rows"),
        (lambda x: VARIABLE.assign_add(x), "Assign"),
        (printing, "PrintV2"),
        (branching, "chooses what to run"),
        (looping, "chooses what to run"),
        (lambda x: tf.numpy_function(np.abs, [x], tf.float32), "runs Python"),
        (lambda x: tf.reshape(x, [1, 1]) @ tf.ones([1, 2]), "MatMul"),
        (lambda x: tf.boolean_mask([1, 2], [x > 0, x > 1]), "a different number of values"),
        (
            lambda x: tf.strings.split([tf.strings.as_string(x)] * 2).values,
            "a different number of parts",
        ),
        (
            lambda x: tf.strings.split([tf.strings.as_string(x)]).row_splits,
            "a different number of parts",
        ),
        (lambda x: tf.zeros([tf.cast(x, tf.int32)]), ""),
        (lambda x: tf.complex(x, x), ""),
        (lambda x: tf.gather_nd([[x, x]], tf.constant([[0, 1]], tf.int16)), "of 16 bits"),
        (lambda x: tf.gather_nd([x, x], tf.zeros([4, 0], tf.int32)), "picks whole rows"),
    ],
)
def test_not_vectorised(function: Any, why: str) -> None:
    assert why in refusal(function, NUMBERS, checked=True)


def test_only_tables_that_cannot_change_are_looked_up() -> None:
    made(STATIC.lookup, TEXTS)
    MUTABLE.insert([b"a"], [7])
    assert "table that may change" in refusal(MUTABLE.lookup, TEXTS)
    assert "table that may change" in refusal(DENSE.lookup, COUNTS)
    assert MUTABLE.size() == 1


def test_images_are_decoded_one_by_one() -> None:
    assert "one image at a time" in refusal(tf.io.decode_jpeg, TEXTS)


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
    assert kind in differing(rest_of(function, columns).graph)


def test_single_steps_of_arithmetic_and_integers_do_not_differ() -> None:
    def function(x: Any, n: Any) -> Any:
        return (x - 3.7) / 1.3, x / 255.0, tf.clip_by_value(x, 2.0, 3.0), n + n + n + n * 5

    made(function, NUMBERS, COUNTS)
    graph = rest_of(function, [tf.constant(NUMBERS), tf.constant(COUNTS)]).graph
    assert not list(differing(graph))


def test_the_bytes_of_a_row_are_estimated() -> None:
    small = plan(lambda n: tf.one_hot(n, 10), [tf.constant(COUNTS)])
    large = plan(lambda n: tf.one_hot(n, 1000), [tf.constant(COUNTS)])
    assert isinstance(small, Vectorised)
    assert isinstance(large, Vectorised)
    assert 40 <= small.row_bytes <= 400
    assert 4000 <= large.row_bytes <= 12000


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
    run = plan(function, COLUMNS, checked=True)
    assert isinstance(run, Vectorised), run.why
    (outputs, holds), (empty, _) = by_batch(run, COLUMNS, [column[:0] for column in COLUMNS])
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
    assert ops_on_the_page("| kind | ops |", "Shapes, axes") == set(RULES)
