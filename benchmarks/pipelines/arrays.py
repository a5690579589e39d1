"""Arrays as bytes: genomes, volumes, simulations, and messages of other protobufs."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.pipelines.chain import (
    AUTO,
    Chain,
    Fixed,
    Variable,
    listed,
    named,
    parallel_interleave,
    read,
    read_gzip,
)
from benchmarks.pipelines.records import MOTION


def meshgraphnets(files: Any, batch: int, epochs: int | None) -> Any:
    shapes = {
        "cells": ([1, -1, 3], tf.int32),
        "mesh_pos": ([1, -1, 2], tf.float32),
        "node_type": ([1, -1, 1], tf.int32),
        "velocity": ([40, -1, 2], tf.float32),
    }

    def parsed(record: Any) -> Any:
        row = tf.io.parse_single_example(record, {name: Variable(tf.string) for name in shapes})
        result = {}
        for name, (shape, dtype) in shapes.items():
            value = tf.reshape(tf.io.decode_raw(row[name].values, dtype), shape)
            result[name] = tf.tile(value, [40 // shape[0], 1, 1])
        return result

    def with_targets(row: Any) -> Any:
        result = {name: value[1:-1] for name, value in row.items()}
        return result | {"target|velocity": row["velocity"][2:]}

    rows = tf.data.TFRecordDataset(files[0]).map(parsed, num_parallel_calls=8).prefetch(1)
    rows = rows.map(with_targets, num_parallel_calls=8)
    steps = rows.flat_map(tf.data.Dataset.from_tensor_slices)
    return steps.shuffle(500).repeat(epochs).batch(batch).prefetch(10)


def simulate(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(record: Any) -> Any:
        context, lists = tf.io.parse_single_sequence_example(
            record,
            context_features={
                "key": Fixed([], tf.int64, 0),
                "particle_type": Variable(tf.string),
            },
            sequence_features={"position": Variable(tf.string)},
        )
        position = tf.io.decode_raw(lists["position"].values, tf.float32)
        kinds = tf.io.decode_raw(context["particle_type"].values, tf.int64)
        return tf.reshape(position, [30, -1, 2]), tf.reshape(kinds, [-1])

    def windows(position: Any, kinds: Any) -> Any:
        begins = tf.data.Dataset.range(24)
        return begins.map(lambda begin: (position[begin : begin + 7], kinds))

    rows = tf.data.TFRecordDataset([files[0]]).map(parsed).flat_map(windows)
    rows = rows.map(lambda position, kinds: (tf.transpose(position, [1, 0, 2]), kinds))
    return rows.repeat(epochs).shuffle(512).batch(batch).prefetch(AUTO)


def youtube(files: Any, batch: int, epochs: int | None) -> Any:
    """Quantised features of each frame, of up to 300 frames."""
    context = {"id": Fixed([], tf.string), "labels": Variable(tf.int64)}
    sizes = {"rgb": 1024, "audio": 128}

    def parsed(record: Any) -> Any:
        row, lists = tf.io.parse_single_sequence_example(
            record,
            context_features=context,
            sequence_features={
                name: tf.io.FixedLenSequenceFeature([], tf.string) for name in sizes
            },
        )
        columns = []
        for name, size in sizes.items():
            frames = tf.reshape(tf.io.decode_raw(lists[name], tf.uint8), [-1, size])
            columns.append(tf.cast(frames, tf.float32)[:300] * (4.0 / 255.0) + 4.0 / 512.0 - 2.0)
        frames = tf.concat(columns, 1)
        count = tf.shape(frames)[0]
        frames = tf.ensure_shape(tf.pad(frames, [[0, 300 - count], [0, 0]]), [300, 1152])
        labels = tf.reduce_max(tf.one_hot(row["labels"].values, 3_862), axis=0)
        return row["id"], frames, labels, count

    records = named(files).interleave(read, num_parallel_calls=AUTO)
    return records.map(parsed, num_parallel_calls=AUTO).batch(batch).repeat(epochs).prefetch(AUTO)


def enformer(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(record: Any) -> Any:
        row = tf.io.parse_single_example(
            record, {"sequence": Fixed([], tf.string), "target": Fixed([], tf.string)}
        )
        sequence = tf.reshape(tf.io.decode_raw(row["sequence"], tf.uint8), [8192])
        target = tf.reshape(tf.io.decode_raw(row["target"], tf.float16), [64, 32])
        return {"sequence": tf.cast(sequence, tf.float32), "target": tf.cast(target, tf.float32)}

    records = tf.data.TFRecordDataset(files, compression_type="ZLIB", num_parallel_reads=4)
    rows = records.map(parsed, num_parallel_calls=4)
    return rows.batch(batch).repeat(epochs).prefetch(2)


def nowcasting(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(record: Any) -> Any:
        row = tf.io.parse_single_example(
            record, {"radar_frames": Fixed([], tf.string), "sample_prob": Fixed([], tf.float32)}
        )
        frames = tf.reshape(tf.io.decode_raw(row["radar_frames"], tf.float16), [12, 64, 64, 1])
        return {"frames": tf.cast(frames, tf.float32), "probability": row["sample_prob"]}

    names = named(files).shuffle(len(files))
    records = names.interleave(read_gzip, num_parallel_calls=AUTO, deterministic=False)
    return records.map(parsed, num_parallel_calls=AUTO).batch(batch).prefetch(AUTO)


def alphagenome(files: Any, batch: int, epochs: int | None) -> Any:
    types = {"dna": tf.bool, "rna_seq": tf.float32, "position": tf.int64}

    def parsed(record: Any) -> Any:
        row = tf.io.parse_single_example(record, {name: Fixed([], tf.string) for name in types})
        return {name: tf.io.parse_tensor(row[name], dtype) for name, dtype in types.items()}

    def all_of(names: Any) -> Any:
        parts = [read_gzip(name).map(parsed, num_parallel_calls=AUTO) for name in names]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.concatenate(part)
        return whole

    half = len(files) // 2
    both = tf.data.Dataset.zip((all_of(files[:half]), all_of(files[half:])))
    return both.repeat(epochs).batch(batch).prefetch(AUTO)


def baskerville(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(record: Any) -> Any:
        row = tf.io.parse_single_example(
            record, {"sequence": Fixed([], tf.string), "target": Fixed([], tf.string)}
        )
        sequence = tf.io.decode_raw(row["sequence"], tf.uint8)
        sequence = tf.one_hot(sequence, 1 + 4, dtype=tf.uint8)[:, :4]
        target = tf.reshape(tf.io.decode_raw(row["target"], tf.float16), [64, 32])
        return tf.reshape(tf.cast(sequence, tf.float32), [8192, 4]), tf.cast(target, tf.float32)

    names = named(files).repeat(epochs)
    records = names.interleave(
        lambda name: tf.data.TFRecordDataset(name, compression_type="ZLIB"),
        cycle_length=4,
        num_parallel_calls=AUTO,
    )
    rows = records.shuffle(128, reshuffle_each_iteration=True).map(parsed, AUTO)
    return rows.batch(batch, drop_remainder=True).prefetch(AUTO)


def deepvariant(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(record: Any) -> Any:
        specs = {
            "image/encoded": Fixed([], tf.string),
            "variant/encoded": Fixed([], tf.string),
            "label": Fixed([1], tf.int64),
        }
        row = tf.io.parse_single_example(record, specs)
        image = tf.reshape(tf.io.decode_raw(row["image/encoded"], tf.uint8), [100, 221, 6])
        image = (tf.cast(image, tf.float32) - 128.0) / 128.0
        return image, tf.one_hot(row["label"][0], 3), row["variant/encoded"]

    names = listed(files, shuffle=False).shuffle(len(files))
    records = names.apply(parallel_interleave(read_gzip, cycle_length=4, sloppy=True))
    rows = records.repeat(epochs).map(parsed, num_parallel_calls=AUTO).shuffle(100)
    return rows.batch(batch, drop_remainder=True).prefetch(AUTO)


def deepconsensus(files: Any, batch: int, epochs: int | None) -> Any:
    specs = {
        "subreads/encoded": Fixed([1], tf.string),
        "subreads/shape": Fixed([3], tf.int64),
        "label/encoded": Fixed([1], tf.string),
        "label/shape": Fixed([1], tf.int64),
    }

    def parsed(record: Any) -> Any:
        row = tf.io.parse_single_example(record, specs)
        rows = tf.io.decode_raw(row["subreads/encoded"][0], tf.float32)
        label = tf.io.decode_raw(row["label/encoded"][0], tf.float32)
        return tf.reshape(rows, [85, 100, 1]), tf.reshape(label, [100])

    names = listed(files)
    records = names.interleave(
        read_gzip, cycle_length=AUTO, num_parallel_calls=AUTO, deterministic=False
    )
    rows = records.map(parsed, num_parallel_calls=AUTO).shuffle(500).repeat(epochs)
    return rows.batch(batch, drop_remainder=True).prefetch(AUTO)


def cosmoflow(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(record: Any) -> Any:
        specs = {"x": Fixed([], tf.string), "y": Fixed([4], tf.float32)}
        row = tf.io.parse_single_example(record, specs)
        volume = tf.reshape(tf.io.decode_raw(row["x"], tf.int16), [24, 24, 24, 4])
        return tf.math.log(tf.cast(volume, tf.float32) + 1.0), row["y"]

    names = named(files).shuffle(len(files)).shard(1, 0)
    rows = names.apply(tf.data.TFRecordDataset).map(parsed, num_parallel_calls=AUTO)
    return rows.shuffle(64).repeat(epochs).batch(batch, drop_remainder=True).prefetch(4)


def dlio(files: Any, batch: int, epochs: int | None) -> Any:
    def resized(records: Any) -> Any:
        def first_byte(serialized: Any) -> Any:
            return np.array([each[0] for each in serialized.numpy()], np.uint8)

        return tf.ensure_shape(tf.py_function(first_byte, [records], tf.uint8), [None])

    names = listed(files, shuffle=False).shard(1, 0)
    records = tf.data.TFRecordDataset(names, buffer_size=1 << 20, num_parallel_reads=4)
    records = records.shuffle(512).batch(batch, drop_remainder=True)
    return records.map(resized, num_parallel_calls=AUTO).repeat(epochs)


def motion(files: Any, batch: int, epochs: int | None) -> Any:
    agents = 16
    specs: dict[str, Any] = {
        name: Fixed([agents, steps], tf.float32) for name, steps in MOTION.items()
    }
    specs |= {
        "state/id": Fixed([agents], tf.float32),
        "state/is_sdc": Fixed([agents], tf.int64),
        "roadgraph_samples/xyz": Fixed([500, 3], tf.float32),
        "roadgraph_samples/type": Fixed([500, 1], tf.int64),
        "scenario/id": Fixed([1], tf.string),
    }

    def parsed(record: Any) -> Any:
        row = tf.io.parse_single_example(record, specs)
        kept = {name: value for name, value in row.items() if "/bbox_yaw" not in name}
        return kept | {"valid": row["state/is_sdc"] > 0}

    def part(place: Any) -> Any:
        names = named(files).shard(2, place)
        records = names.interleave(read, num_parallel_calls=AUTO, deterministic=False)
        rows = records.repeat(epochs).shuffle(100).map(parsed, num_parallel_calls=AUTO)
        return rows.batch(batch, drop_remainder=True)

    parts = tf.data.Dataset.range(2).interleave(part, num_parallel_calls=AUTO)
    return parts.prefetch(AUTO)


def unet(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(record: Any) -> Any:
        specs = {
            "X": Fixed([], tf.string),
            "Y": Fixed([], tf.string),
            "mean": Fixed([4], tf.float32),
        }
        row = tf.io.parse_single_example(record, specs)
        volume = tf.reshape(tf.io.decode_raw(row["X"], tf.float32), [32, 32, 32, 4])
        label = tf.reshape(tf.io.decode_raw(row["Y"], tf.uint8), [32, 32, 32, 1])
        return volume, label, row["mean"]

    def normalised(volume: Any, label: Any, mean: Any) -> Any:
        return volume - mean, tf.one_hot(tf.squeeze(label, -1), 4)

    records = tf.data.TFRecordDataset(list(files)).shard(1, 0).cache()
    rows = records.shuffle(64).repeat(epochs).map(parsed, num_parallel_calls=AUTO)
    rows = rows.map(normalised, num_parallel_calls=AUTO)
    return rows.batch(batch, drop_remainder=True).prefetch(AUTO)


def stylegan(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(record: Any) -> Any:
        specs = {"shape": Fixed([3], tf.int64), "data": Fixed([], tf.string)}
        row = tf.io.parse_single_example(record, specs)
        return tf.reshape(tf.io.decode_raw(row["data"], tf.uint8), row["shape"])

    labels = tf.data.Dataset.from_tensor_slices(np.zeros((1 << 14, 1), np.float32))
    images = tf.data.TFRecordDataset(files[0], buffer_size=1 << 18).take(1 << 14)
    images = images.map(parsed, num_parallel_calls=4)
    both = tf.data.Dataset.zip((images, labels)).shuffle(500).repeat(epochs)
    return both.prefetch(64).batch(batch)


def messages(files: Any, batch: int, epochs: int | None) -> Any:
    return tf.data.TFRecordDataset(files[0], compression_type="")


CHAINS = [
    Chain("google-deepmind/deepmind-research meshgraphnets", meshgraphnets, "meshes", 16),
    Chain("google-deepmind/deepmind-research learning_to_simulate", simulate, "particles", 16),
    Chain("google/youtube-8m", youtube, "videos", 16),
    Chain("google-deepmind/deepmind-research enformer", enformer, "genome, ZLIB", 16, "inflating"),
    Chain(
        "google-deepmind/deepmind-research nowcasting", nowcasting, "radar, GZIP", 16, "inflating"
    ),
    Chain("google-deepmind/alphagenome_research", alphagenome, "tracks, GZIP", 8, "inflating"),
    Chain("calico/baskerville; calico/basenji", baskerville, "genome, ZLIB", 16, "inflating"),
    Chain("google/deepvariant", deepvariant, "pileups, GZIP", 32, "inflating"),
    Chain("google/deepconsensus", deepconsensus, "subreads, GZIP", 32, "inflating"),
    Chain("mlcommons/hpc", cosmoflow, "cosmology", 8),
    Chain("mlcommons/storage", dlio, "pixels", 64, "other"),
    Chain("waymo-research/waymax", motion, "motion", 16),
    Chain("NVIDIA/DeepLearningExamples UNet_3D_Medical", unet, "volumes", 8),
    Chain("NVlabs/stylegan2", stylegan, "pixels", 32),
    Chain(
        "waymo-research/waymo-open-dataset; sshaoshuai/MTR; open-mmlab/OpenPCDet",
        messages,
        "frames",
        1,
        "other",
    ),
]
