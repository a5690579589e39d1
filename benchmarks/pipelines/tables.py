"""Click rates, ranking, and graphs: many small features."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from benchmarks.pipelines.chain import (
    AUTO,
    Chain,
    Fixed,
    Variable,
    dense,
    listed,
    named,
    read,
    read_gzip,
)

CLICKS = {
    "label": Fixed([], tf.int64),
    "dense": Fixed([13], tf.float32),
    "cat": Fixed([26], tf.int64),
}


def tfx(files: Any, batch: int, epochs: int | None) -> Any:
    names = listed(files).repeat(epochs)
    records = names.interleave(lambda name: read_gzip(name), num_parallel_calls=AUTO)
    records = records.shuffle(10_000).batch(batch, drop_remainder=False)
    parsed = records.apply(tf.data.experimental.parse_example_dataset(CLICKS))
    return parsed.map(lambda row: (row, row.pop("label"))).prefetch(AUTO)


def gdmix(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(records: Any) -> Any:
        row = tf.io.parse_example(records, CLICKS)
        return row, row.pop("label")

    records = tf.data.TFRecordDataset(files, "GZIP").batch(batch)
    return records.map(parsed, num_parallel_calls=AUTO).prefetch(AUTO)


def easy_rec(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(record: Any) -> Any:
        row = tf.io.parse_single_example(record, CLICKS)
        return {**row, "id": tf.strings.as_string(row["cat"][0])}

    def split(row: Any) -> Any:
        return {name: row[name] for name in ("dense", "cat", "id")}, row["label"]

    names = named(files).shuffle(len(files))
    records = names.interleave(read, cycle_length=4, num_parallel_calls=AUTO)
    records = records.shard(1, 0).shuffle(2_048).repeat(epochs)
    rows = records.map(parsed, num_parallel_calls=4).batch(batch)
    return rows.prefetch(1).map(split, num_parallel_calls=4).prefetch(1)


def recap(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(records: Any) -> Any:
        row = tf.io.parse_example(records, CLICKS)
        row["dense"] = tf.where(tf.math.is_nan(row["dense"]), 0.0, row["dense"])
        return row, tf.cast(row.pop("label"), tf.float32)

    names = named(files).shuffle(len(files)).repeat(epochs)
    records = names.interleave(
        lambda name: read_gzip(name).prefetch(4),
        cycle_length=4,
        block_length=4,
        num_parallel_calls=4,
        deterministic=False,
    )
    batches = records.shuffle(4 * batch).batch(batch, drop_remainder=True)
    return batches.map(parsed, num_parallel_calls=AUTO).ignore_errors().prefetch(10)


def click_sequences(files: Any, batch: int, epochs: int | None) -> Any:
    names = [f"{name}_sequence" for name in ("item", "category", "shop")]

    def parsed(records: Any) -> Any:
        specs: dict[str, Any] = {
            "label": Fixed([], tf.int64),
            "user": Fixed([], tf.int64),
            "target": Fixed([3], tf.int64),
        }
        specs |= {name: Variable(tf.int64) for name in names}
        row = tf.io.parse_example(records, specs)
        sequences = {name: dense(row[name])[:, :50] for name in names}
        return {"user": row["user"], "target": row["target"], **sequences}, row["label"]

    def halves(given: Any, labels: Any) -> Any:
        half = tf.shape(labels)[0] // 2
        parts = [
            ({name: value[part] for name, value in given.items()}, labels[part])
            for part in (slice(None, half), slice(half, None))
        ]
        first, second = (tf.data.Dataset.from_tensors(part) for part in parts)
        return first.concatenate(second)

    records = tf.data.TFRecordDataset(files, num_parallel_reads=4).shard(1, 0)
    batches = records.batch(batch, drop_remainder=True).map(parsed, num_parallel_calls=AUTO)
    return batches.flat_map(halves).prefetch(AUTO)


def ranking(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(records: Any) -> Any:
        lists = tf.io.parse_example(
            records, {"context": Fixed([], tf.string), "documents": tf.io.RaggedFeature(tf.string)}
        )
        context = tf.io.parse_example(lists["context"], {"query": Fixed([12], tf.int64)})
        specs = {"score": Fixed([32], tf.float32), "relevance": Fixed([], tf.int64)}
        rows = tf.io.parse_example(lists["documents"].flat_values, specs)
        scores = lists["documents"].with_flat_values(rows["score"]).to_tensor()
        relevance = lists["documents"].with_flat_values(rows["relevance"]).to_tensor(-1)
        return {**context, "score": scores}, relevance

    names = listed(files, shuffle=False).shuffle(len(files))
    records = names.interleave(read, cycle_length=8, num_parallel_calls=AUTO)
    records = records.repeat(epochs).shuffle(1_000)
    return records.batch(batch).map(parsed, num_parallel_calls=AUTO).prefetch(AUTO)


def graphs(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(records: Any) -> Any:
        ragged = tf.io.RaggedFeature
        specs = {
            "nodes/paper.#size": Fixed([1], tf.int64),
            "nodes/paper.feat": ragged(tf.float32),
            "nodes/paper.labels": ragged(tf.int64),
            "edges/cites.#size": Fixed([1], tf.int64),
            "edges/cites.#source": ragged(tf.int64),
            "edges/cites.#target": ragged(tf.int64),
        }
        return tf.io.parse_example(records, specs)

    names = named(files).shard(1, 0).shuffle(len(files))
    records = names.interleave(read, num_parallel_calls=AUTO, deterministic=False)
    batches = records.shuffle(1_000).repeat(epochs).batch(batch)
    return batches.map(parsed, num_parallel_calls=AUTO).prefetch(AUTO)


CHAINS = [
    Chain("tensorflow/tfx-bsl", tfx, "clicks, GZIP", 512, "inflating"),
    Chain("linkedin/gdmix", gdmix, "clicks, GZIP", 512, "inflating"),
    Chain("alibaba/EasyRec", easy_rec, "clicks", 512),
    Chain("twitter/the-algorithm-ml", recap, "clicks, GZIP", 512, "inflating"),
    Chain("NVIDIA/DeepLearningExamples SIM", click_sequences, "click sequences", 256),
    Chain("tensorflow/ranking", ranking, "ranked documents", 128),
    Chain("tensorflow/gnn", graphs, "graphs", 128),
]
