"""Texts, notes, and speech: tokens and samples of sound."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.pipelines.chain import (
    AUTO,
    Chain,
    Fixed,
    Variable,
    dense,
    listed,
    named,
    parallel_interleave,
    read,
)

_MASKED = {
    "input_ids": Fixed([128], tf.int64),
    "input_mask": Fixed([128], tf.int64),
    "segment_ids": Fixed([128], tf.int64),
    "masked_lm_positions": Fixed([20], tf.int64),
    "masked_lm_ids": Fixed([20], tf.int64),
    "masked_lm_weights": Fixed([20], tf.float32),
    "next_sentence_labels": Fixed([1], tf.int64),
}
_TEXTS = {"inputs": Variable(tf.int64), "targets": Variable(tf.int64)}


def _masked(record: Any) -> Any:
    row = tf.io.parse_single_example(record, _MASKED)
    return {
        name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else value
        for name, value in row.items()
    }


def bert(files: Any, batch: int, epochs: int | None) -> Any:
    names = named(files).repeat(epochs).shuffle(buffer_size=len(files))
    records = names.apply(parallel_interleave(tf.data.TFRecordDataset, sloppy=True, cycle_length=4))
    batches = tf.data.experimental.map_and_batch(
        _masked, batch_size=batch, num_parallel_batches=4, drop_remainder=True
    )
    return records.shuffle(buffer_size=100).apply(batches)


def bert_of_mlperf(files: Any, batch: int, epochs: int | None) -> Any:
    names = named(files).shard(1, 0).shuffle(len(files))
    records = names.apply(parallel_interleave(read, sloppy=True, cycle_length=8))
    batches = tf.data.experimental.map_and_batch(
        _masked, batch_size=batch, num_parallel_calls=AUTO, drop_remainder=True
    )
    return records.shuffle(1_000).repeat(epochs).apply(batches).prefetch(AUTO)


def electra(files: Any, batch: int, epochs: int | None) -> Any:
    names = named(files).shard(1, 0).repeat(epochs).shuffle(len(files))
    records = names.interleave(read, cycle_length=4, num_parallel_calls=AUTO, deterministic=True)
    rows = records.shuffle(100).map(_masked, num_parallel_calls=AUTO)
    return rows.batch(batch, drop_remainder=True).prefetch(AUTO)


def seqio(files: Any, batch: int, epochs: int | None) -> Any:
    lengths = {"inputs": 128, "targets": 64}

    def parsed(record: Any) -> Any:
        row = tf.io.parse_single_example(record, _TEXTS)
        return {name: dense(value) for name, value in row.items()}

    def trimmed(row: Any) -> Any:
        return {name: tf.cast(value[: lengths[name]], tf.int32) for name, value in row.items()}

    names = named(files).shard(1, 0).shuffle(len(files))
    records = names.interleave(read, cycle_length=16, block_length=16, num_parallel_calls=AUTO)
    rows = records.map(parsed, num_parallel_calls=AUTO).repeat(epochs)
    rows = rows.map(trimmed, num_parallel_calls=AUTO).shuffle(1_000)
    return rows.padded_batch(batch, lengths, drop_remainder=True).prefetch(AUTO)


def paxml(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(record: Any) -> Any:
        row = tf.io.parse_single_example(record, _TEXTS)
        return dense(row["inputs"])[:200]

    def packed(rows: Any) -> Any:
        flat = tf.reshape(rows, [-1])
        length = tf.size(flat) // 256 * 256
        return {"ids": tf.reshape(flat[:length], [-1, 256])}

    names = listed(files, shuffle=False).shard(1, 0)
    records = names.interleave(read, cycle_length=4, num_parallel_calls=AUTO)
    rows = records.shuffle(1_000).repeat(epochs).map(parsed, num_parallel_calls=AUTO)
    return rows.padded_batch(64, [200]).map(packed).unbatch().batch(batch).prefetch(AUTO)


def tensor2tensor(files: Any, batch: int, epochs: int | None) -> Any:
    def opened(name: Any) -> Any:
        return tf.data.TFRecordDataset(name, buffer_size=8 << 20).map(parsed)

    def parsed(record: Any) -> Any:
        row = tf.io.parse_single_example(record, _TEXTS)
        return {name: dense(value) for name, value in row.items()}

    def as_numbers(row: Any) -> Any:
        return {name: tf.cast(value, tf.int32) for name, value in row.items()}

    rows = named(files).apply(parallel_interleave(opened, sloppy=True, cycle_length=8))
    rows = rows.map(as_numbers, num_parallel_calls=AUTO).shuffle(1_000)
    boundaries = [32, 64, 128]
    return rows.bucket_by_sequence_length(
        lambda row: tf.size(row["inputs"]), boundaries, [batch] * 4
    ).prefetch(2)


def translation(files: Any, batch: int, epochs: int | None) -> Any:
    longest = 100

    def parsed(record: Any) -> Any:
        row = tf.io.parse_single_example(record, _TEXTS)
        return {name: tf.cast(dense(value), tf.int32) for name, value in row.items()}

    def is_short(row: Any) -> Any:
        return tf.logical_and(tf.size(row["inputs"]) <= longest, tf.size(row["targets"]) <= longest)

    records = listed(files, shuffle=False).interleave(read, num_parallel_calls=AUTO)
    rows = records.map(parsed, num_parallel_calls=AUTO).filter(is_short)
    shapes = {"inputs": [longest], "targets": [longest]}
    return rows.padded_batch(batch, shapes, drop_remainder=True).repeat(epochs).prefetch(AUTO)


def lingvo(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(records: Any) -> Any:
        return tf.io.parse_example(records, _MASKED)

    records = named(files).interleave(read, cycle_length=4, num_parallel_calls=AUTO)
    return records.batch(batch).map(parsed, num_parallel_calls=AUTO).prefetch(AUTO)


def mesh_transformer(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(record: Any) -> Any:
        row = tf.io.parse_single_example(record, {"text": Variable(tf.int64)})
        return tf.cast(dense(row["text"]), tf.int32)

    rows = tf.data.TFRecordDataset(files[0]).map(parsed, num_parallel_calls=AUTO)
    ragged = tf.data.experimental.dense_to_ragged_batch(batch, drop_remainder=True)
    return rows.apply(ragged).prefetch(10)


def gpt_neo(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(record: Any) -> Any:
        row = tf.io.parse_single_example(record, {"text": Variable(tf.int64)})
        return tf.cast(dense(row["text"]), tf.int32)

    def shifted(text: Any) -> Any:
        text = tf.reshape(text[:1024], [1024])
        return text[:-1], text[1:]

    names = named(files).shard(1, 0)
    records = names.interleave(read, cycle_length=4, num_parallel_calls=AUTO)
    rows = records.map(parsed, num_parallel_calls=1).map(shifted).shuffle(512)
    return rows.batch(batch, drop_remainder=True).prefetch(AUTO).repeat(epochs)


def dialogues(files: Any, batch: int, epochs: int | None) -> Any:
    specs = {name: Fixed([], tf.string) for name in ("context", "response")}
    specs |= {f"context/{place}": Fixed([], tf.string, "") for place in range(10)}

    def parsed(records: Any) -> Any:
        return tf.io.parse_example(records, specs)

    mixed = tf.data.experimental.shuffle_and_repeat(8 * batch, epochs)
    records = listed(files).apply(parallel_interleave(read, cycle_length=8)).apply(mixed)
    return records.batch(batch).map(parsed, num_parallel_calls=8).prefetch(8)


def ddsp(files: Any, batch: int, epochs: int | None) -> Any:
    specs = {
        "audio": Fixed([16_000], tf.float32),
        "f0_hz": Fixed([250], tf.float32),
        "f0_confidence": Fixed([250], tf.float32),
        "loudness_db": Fixed([250], tf.float32),
    }
    names = listed(files, shuffle=True)
    records = names.interleave(read, cycle_length=40, num_parallel_calls=AUTO)
    rows = records.map(lambda record: tf.io.parse_single_example(record, specs), AUTO)
    return rows.shuffle(200).batch(batch, drop_remainder=True).repeat(epochs).prefetch(AUTO)


def music_vae(files: Any, batch: int, epochs: int | None) -> Any:
    def pitches(record: Any) -> Any:
        def drawn(serialized: Any) -> Any:
            row = tf.train.Example.FromString(serialized.numpy())
            return np.array(row.features.feature["pitches"].int64_list.value, np.int64)

        return tf.ensure_shape(tf.py_function(drawn, [record], tf.int64), [None])

    records = listed(files, shuffle=False).interleave(read, cycle_length=8)
    rows = records.cache().map(pitches, num_parallel_calls=AUTO).shuffle(1_000)
    return rows.repeat(epochs).padded_batch(batch, [None], drop_remainder=True).prefetch(AUTO)


CHAINS = [
    Chain("google-research/bert", bert, "masked tokens", 64),
    Chain("mlcommons/training bert", bert_of_mlperf, "masked tokens", 64),
    Chain(
        "google-research/electra; NVIDIA/DeepLearningExamples ELECTRA", electra, "masked tokens", 64
    ),
    Chain("google/seqio; google-research/t5x; magenta/mt3", seqio, "texts", 64),
    Chain("google/paxml", paxml, "texts", 32),
    Chain("tensorflow/tensor2tensor", tensor2tensor, "texts", 64),
    Chain("tensorflow/models transformer", translation, "texts", 64),
    Chain("tensorflow/lingvo", lingvo, "masked tokens", 128),
    Chain("kingoflolz/mesh-transformer-jax", mesh_transformer, "long texts", 16),
    Chain("EleutherAI/gpt-neo", gpt_neo, "long texts", 16),
    Chain("PolyAI-LDN/conversational-datasets", dialogues, "dialogues", 100),
    Chain("magenta/ddsp", ddsp, "audio", 16),
    Chain("magenta/magenta", music_vae, "notes", 64, "other"),
]
