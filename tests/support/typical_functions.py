"""Map functions as people write them after tf.io.parse_single_example, and records.

A few lines stand for many programs: images as bytes, rows of a table, texts, sequences, sound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import tensorflow as tf

import tfrfast as tfr

#: Where the remainder of a function runs: on whole batches, partly row by row, or not lifted.
Runs = Literal["whole", "split", "plain"]


@dataclass(frozen=True)
class Typical:
    features: dict[str, Any]
    function: Callable[[Any], Any]
    runs: Runs

    def parse(self, record: Any) -> Any:
        return self.function(tf.io.parse_single_example(record, self.features))

    def records(self, count: int) -> list[bytes]:
        return [
            tfr.encode_example({name: made_of(name, number) for name in self.features})
            for number in range(count)
        ]


TYPICAL: dict[str, Typical] = {}

INT, FLOAT, TEXT = tf.int64, tf.float32, tf.string


def one(dtype: Any, *default: Any) -> Any:
    return tf.io.FixedLenFeature([], dtype, *default)


def many(dtype: Any) -> Any:
    return tf.io.VarLenFeature(dtype)


def typical(name: str, runs: Runs, **features: Any) -> Callable[[Any], Any]:
    def add(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        TYPICAL[name] = Typical(features, function, runs)
        return function

    return add


GENRES = ["action", "comedy", "drama", "horror", "war"]
WORDS = ["the", "record", "is", "a", "string", "of", "bytes", "and", "more"]


def made_of(name: str, number: int) -> Any:
    """Returns the value of a feature in a record. The feature's name begins with its kind."""
    random = np.random.default_rng([number, *name.encode()])
    kind = name.partition("_")[0]
    if kind == "raw":
        return random.integers(0, 256, 28 * 28, np.uint8).tobytes()
    if kind in ("jpeg", "png"):
        pixels = tf.constant(random.integers(0, 256, [24, 24, 3], np.uint8))
        return (tf.io.encode_jpeg if kind == "jpeg" else tf.io.encode_png)(pixels).numpy()
    if kind == "jpegs":
        return [made_of("jpeg", 3 * number + place) for place in range(3)]
    if kind == "wav":
        return tf.audio.encode_wav(random.random([160, 1], np.float32) - 0.5, 16000).numpy()
    if kind == "tensor":
        return tf.io.serialize_tensor(random.random([8, 4], np.float32)).numpy()
    if kind == "text":
        return " ".join(random.choice(WORDS, random.integers(1, 12)))
    if kind == "csv":
        return ",".join(f"{each:.3f}" for each in random.random(6))
    if kind == "genre":
        return str(random.choice(GENRES))
    if kind == "category":
        return f"{random.integers(0, 1 << 20):x}"
    if kind == "sequence":
        return random.integers(1, 100, random.integers(0, 20))
    if kind in ("xmin", "ymin", "xmax", "ymax", "weights"):  # equally many in each
        count = np.random.default_rng(number).integers(1, 5)
        return random.random(count, np.float32)
    if kind == "embedding":
        return random.random(24, np.float32)
    if kind == "ratio":
        return random.random(1, np.float32)
    return int(random.integers(0, 10))


# Images as bytes.


@typical("raw image, scaled", "whole", raw=one(TEXT), label=one(INT))
def _(parsed: Any) -> Any:
    image = tf.reshape(tf.io.decode_raw(parsed["raw"], tf.uint8), [28, 28, 1])
    return tf.cast(image, tf.float32) / 255.0, tf.one_hot(parsed["label"], 10)


@typical("raw planes, transposed", "whole", raw=one(TEXT), label=one(INT))
def _(parsed: Any) -> Any:
    planes = tf.reshape(tf.io.decode_raw(parsed["raw"], tf.uint8), [4, 14, 14])
    image = tf.image.convert_image_dtype(tf.transpose(planes, [1, 2, 0]), tf.float32)
    return {"image": image}, parsed["label"]


@typical("raw image, padded and flipped", "split", raw=one(TEXT), label=one(INT))
def _(parsed: Any) -> Any:
    image = tf.reshape(tf.io.decode_raw(parsed["raw"], tf.uint8), [28, 28, 1])
    image = tf.image.resize_with_crop_or_pad(tf.cast(image, tf.float32), 32, 32)
    flipped = tf.image.random_flip_left_right(image * 0.0)
    return flipped, image, parsed["label"]


@typical("jpeg, resized", "split", jpeg=one(TEXT), label=one(INT))
def _(parsed: Any) -> Any:
    image = tf.io.decode_jpeg(parsed["jpeg"], channels=3)
    image = tf.image.resize(image, [16, 16])
    return image / 255.0, tf.one_hot(parsed["label"], 10)


@typical("jpeg in Python", "plain", jpeg=one(TEXT), label=one(INT))
def _(parsed: Any) -> Any:
    mean = tf.py_function(lambda text: len(text.numpy()), [parsed["jpeg"]], tf.int32)
    return tf.ensure_shape(mean, []), parsed["label"]


@typical("frames of a film", "split", jpegs=many(TEXT), label=one(INT))
def _(parsed: Any) -> Any:
    spec = tf.TensorSpec([24, 24, 3], tf.uint8)
    frames = tf.map_fn(tf.io.decode_jpeg, parsed["jpegs"].values, fn_output_signature=spec)
    return tf.cast(tf.ensure_shape(frames, [3, 24, 24, 3]), tf.float32), parsed["label"]


# Arrays as bytes.


@typical("serialised tensor", "whole", tensor=one(TEXT), label=one(INT))
def _(parsed: Any) -> Any:
    array = tf.io.parse_tensor(parsed["tensor"], tf.float32)
    return tf.ensure_shape(array, [8, 4]), parsed["label"]


# Rows of a table.

_CRITEO = {f"category_{n}": one(TEXT, "") for n in range(8)}
_CRITEO |= {f"ratio_{n}": one(FLOAT, 0.0) for n in range(5)}


@typical("logarithms and hashes", "whole", ratio=one(FLOAT, 0.0), **_CRITEO)
def _(parsed: Any) -> Any:
    label = parsed.pop("ratio")
    dense = tf.stack([parsed[f"ratio_{n}"] for n in range(5)])
    hashed = [tf.strings.to_hash_bucket_fast(parsed[f"category_{n}"], 1000) for n in range(8)]
    return {"dense": tf.math.log1p(dense), "sparse": tf.stack(hashed)}, label


@typical("a lookup", "whole", genre=one(TEXT), ratio=one(FLOAT))
def _(parsed: Any) -> Any:
    return table().lookup(parsed["genre"]), parsed["ratio"]


@typical("buckets and crosses", "split", ratio=one(FLOAT), genre=one(TEXT), category=one(TEXT))
def _(parsed: Any) -> Any:
    bucket = tf.searchsorted([0.2, 0.5, 0.8], [parsed["ratio"]])[0]
    crossed = tf.strings.join([parsed["genre"], "x", parsed["category"]])
    return bucket, tf.strings.to_hash_bucket_strong(crossed, 100, [3, 5])


@typical("an assert", "split", ratio=one(FLOAT), label=one(INT))
def _(parsed: Any) -> Any:
    tf.debugging.assert_non_negative(parsed["label"], "a label is negative")
    tf.debugging.assert_less_equal(parsed["ratio"], 1.0)
    return {"ratio": parsed["ratio"]}, parsed["label"]


@typical("a choice that divides", "split", ratio=one(FLOAT), label=one(INT), count=one(INT))
def _(parsed: Any) -> Any:
    count = parsed["count"]
    share = tf.cond(count > 0, lambda: parsed["label"] // count, lambda: tf.zeros([], tf.int64))
    return share, tf.math.divide_no_nan(parsed["ratio"], tf.cast(count, tf.float32))


# Texts.


@typical("words, hashed and padded", "split", text=one(TEXT), label=one(INT))
def _(parsed: Any) -> Any:
    words = tf.strings.split(tf.strings.lower(parsed["text"]))[:8]
    hashed = tf.strings.to_hash_bucket_fast(words, 500) + 1
    hashed = tf.pad(hashed, [[0, 8 - tf.size(hashed)]])
    return tf.ensure_shape(hashed, [8]), parsed["label"]


@typical("a line, decoded", "split", csv=one(TEXT), label=one(INT))
def _(parsed: Any) -> Any:
    columns = tf.io.decode_csv(parsed["csv"], [0.0] * 6)
    return tf.stack(columns[:5]), columns[5], parsed["label"]


# Sequences.


@typical("padded sequence", "split", sequence=many(INT), label=one(INT))
def _(parsed: Any) -> Any:
    sequence = tf.sparse.to_dense(parsed["sequence"])[:16]
    sequence = tf.pad(sequence, [[0, 16 - tf.shape(sequence)[0]]])
    sequence.set_shape([16])
    return sequence, tf.cast(sequence > 0, tf.float32), parsed["label"]


@typical("sparse as it is", "whole", sequence=many(INT), ratio=one(FLOAT))
def _(parsed: Any) -> Any:
    return {"sequence": parsed["sequence"]}, parsed["ratio"]


@typical("fixed length from sparse", "whole", embedding=many(FLOAT), label=one(INT))
def _(parsed: Any) -> Any:
    return tf.reshape(tf.sparse.to_dense(parsed["embedding"]), [4, 6]), parsed["label"]


@typical("boxes", "split", xmin=many(FLOAT), ymin=many(FLOAT), xmax=many(FLOAT), ymax=many(FLOAT))
def _(parsed: Any) -> Any:
    sides = [tf.sparse.to_dense(parsed[name]) for name in ("ymin", "xmin", "ymax", "xmax")]
    boxes = tf.stack(sides, axis=1)
    boxes = tf.pad(boxes[:4], [[0, 4 - tf.minimum(tf.shape(boxes)[0], 4)], [0, 0]])
    return tf.reshape(boxes, [4, 4])


# Sound.


@typical("sound", "split", wav=one(TEXT), label=one(INT))
def _(parsed: Any) -> Any:
    sound, _ = tf.audio.decode_wav(parsed["wav"], desired_channels=1, desired_samples=160)
    return tf.squeeze(sound, axis=-1), parsed["label"]


_TABLES: list[Any] = []


def table() -> Any:
    """Returns a table, made on first use, outside the traced function."""
    if not _TABLES:
        with tf.init_scope():
            pairs = tf.lookup.KeyValueTensorInitializer(GENRES, list(range(len(GENRES))))
            _TABLES.append(tf.lookup.StaticHashTable(pairs, -1))
    return _TABLES[0]
