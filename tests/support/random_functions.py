"""Random functions of the columns of a row: arithmetic, shapes, strings, lookups."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf
from hypothesis import strategies as st

Steps = list[tuple[int, int, int]]


@functools.cache
def table() -> Any:
    """Returns a table, made on first use: the import of this module makes no resources."""
    with tf.init_scope():  # not in the function that is being traced
        keys = tf.lookup.KeyValueTensorInitializer([b"a", b"12"], [1, 2])
        return tf.lookup.StaticHashTable(keys, -1)


def first(values: Any) -> Any:
    return tf.reshape(values, [-1])[0]


def number_in(texts: Any) -> Any:
    return tf.strings.to_number(first(texts), tf.int64)


def checked(values: Any) -> Any:
    tf.debugging.assert_less(values, tf.constant(50, values.dtype))
    return values * 2


def padded(texts: Any) -> Any:
    texts = tf.constant([], tf.string) if isinstance(texts, list) and not texts else texts
    texts = tf.pad(texts[:3], [[0, 3 - tf.minimum(tf.size(texts), 3)]])
    return tf.ensure_shape(texts, [3])


# Steps of random functions, with the types of their arguments. Steps that do not fit are left out.
STEPS: list[tuple[tuple[str, ...], Any]] = [
    (("f", "f"), lambda x, y: x + y),
    (("f", "f"), lambda x, y: x - y),
    (("f", "f"), lambda x, y: x * y),
    (("f", "f"), lambda x, y: x / y),
    (("f",), lambda x: x * 0.3),
    (("f",), lambda x: x / 255.0),
    (("f",), lambda x: x - 1.7),
    (("f",), lambda x: x * x),
    (("f",), lambda x: tf.sqrt(tf.abs(x))),
    (("f",), tf.floor),
    (("f", "f"), lambda x, y: tf.where(x < y, x, y)),
    (("f",), lambda x: tf.clip_by_value(x, -1.0, 1.0)),
    (("f",), lambda x: tf.cast(tf.clip_by_value(x, -99.0, 99.0), tf.int64)),
    (("f", "f"), lambda x, y: tf.stack([x, y], -1)),
    (("f", "f"), lambda x, y: tf.concat([x, y], 0)),
    (("f",), lambda x: tf.expand_dims(x, 0)),
    (("f",), lambda x: x[..., -1]),
    (("f",), lambda x: x[0]),
    (("f",), tf.transpose),
    (("f",), lambda x: tf.reshape(x, [-1])),
    (("f",), lambda x: tf.reduce_max(tf.abs(x), -1)),
    (("f",), lambda x: tf.cast(x > 0, tf.float32)),
    (("i",), lambda n: tf.one_hot(n, 3)),
    (("i", "i"), lambda n, m: n * m + 1),
    (("i", "i"), lambda n, m: n // m),
    (("i",), lambda n: n % 7),
    (("i",), lambda n: tf.cast(n, tf.float32)),
    (("i",), lambda n: tf.reduce_sum(n)),
    (("i",), lambda n: tf.gather([4, 5, 6], tf.clip_by_value(n, 0, 2))),
    (("i",), lambda n: tf.gather(tf.constant([[1.5, 2], [3, 4]]), n)),
    (("i",), tf.strings.as_string),
    (("s",), lambda s: tf.cast(tf.strings.length(s), tf.int64)),
    (("s", "s"), lambda s, t: tf.strings.join([s, t], "-")),
    (("s",), lambda s: tf.strings.to_hash_bucket_fast(s, 5)),
    (("s",), lambda s: tf.strings.to_number(s, tf.int64)),
    (("s",), lambda s: tf.strings.substr(s, 1, 2)),
    (("s",), lambda s: tf.strings.upper(s)[tf.newaxis]),
    (("s",), lambda s: tf.cast(table().lookup(s), tf.int64)),
    (("s", "s"), lambda s, t: tf.cast(s == t, tf.float32)),
    (("i", "i"), lambda n, m: tf.cond(first(m) > 1, lambda: n // first(m), lambda: n)),
    (("i", "s"), lambda n, s: tf.cond(first(n) > 0, lambda: number_in(s), lambda: first(n))),
    (("f", "f"), lambda x, y: tf.cond(first(x) < first(y), lambda: x, lambda: checked(-x))),
    (("f",), lambda x: tf.debugging.check_numerics(x, "")),
    (("i",), lambda n: checked(n)),
    (
        ("i", "s"),
        lambda n, s: tf.cond(first(n) < 2, lambda: padded([first(s)]), lambda: padded([])),
    ),
]
KINDS = {tf.float32: "f", tf.int64: "i", tf.string: "s"}


def random_steps(most: int = 14) -> Any:
    """Returns a function: for each step its number, and the choice of its arguments among earlier
    values.
    """
    picks = st.integers(0, 9)
    return st.lists(
        st.tuples(st.integers(0, len(STEPS) - 1), picks, picks), min_size=2, max_size=most
    )


def done(steps: Steps, row: list[Any]) -> list[Any]:
    """Runs each step on earlier values, and returns the resulting values."""
    pool = list(row)
    for step, *picks in steps:
        takes, do = STEPS[step]
        suitable = [[each for each in pool if KINDS[each.dtype] == kind] for kind in takes]
        chosen = list(zip(suitable, picks, strict=False))
        try:
            new = do(*(some[-1 - pick % len(some)] for some, pick in chosen))
        except (ValueError, tf.errors.InvalidArgumentError):
            continue  # shapes that do not go together
        if new.dtype in KINDS and (new.shape.num_elements() or 0) < 300:
            pool.append(new)
    return pool[len(row) - 1 :]
