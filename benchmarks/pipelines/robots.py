"""Episodes: records of many steps, which become rows of their own."""

from __future__ import annotations

import random
from typing import Any

import tensorflow as tf

from benchmarks.pipelines.chain import AUTO, Chain, Fixed, named, read_gzip, read_split
from benchmarks.pipelines.records import EPISODE_STEPS

_STEPS = {
    "steps/observation/image": Fixed([EPISODE_STEPS], tf.string),
    "steps/observation/state": Fixed([EPISODE_STEPS, 8], tf.float32),
    "steps/action": Fixed([EPISODE_STEPS, 7], tf.float32),
    "steps/language_instruction": Fixed([EPISODE_STEPS], tf.string),
    "steps/is_first": Fixed([EPISODE_STEPS], tf.int64),
    "steps/is_last": Fixed([EPISODE_STEPS], tf.int64),
}


def _episodes(files: Any) -> Any:
    records = read_split(files)
    return records.map(lambda record: tf.io.parse_single_example(record, _STEPS), AUTO)


def _chunked(steps: Any) -> Any:
    """Yields each step with its own action and the next three actions."""
    places = tf.range(EPISODE_STEPS)[:, None] + tf.range(4)[None]
    actions = tf.gather(steps["steps/action"], tf.minimum(places, EPISODE_STEPS - 1))
    return {
        "image": steps["steps/observation/image"],
        "state": steps["steps/observation/state"],
        "actions": actions,
        "task": steps["steps/language_instruction"],
    }


def _decoded(frame: Any) -> Any:
    image = tf.image.resize(tf.io.decode_jpeg(frame["image"], 3), [64, 64])
    return {**frame, "image": tf.ensure_shape(image, [64, 64, 3])}


def openvla(files: Any, batch: int, epochs: int | None) -> Any:
    def one(names: Any) -> Any:
        steps = _episodes(names).enumerate().map(lambda _, episode: episode, AUTO).repeat(epochs)
        return steps.map(_chunked, AUTO).flat_map(tf.data.Dataset.from_tensor_slices)

    half = len(files) // 2
    frames = tf.data.Dataset.sample_from_datasets(
        [one(files[:half]), one(files[half:])], [0.5, 0.5]
    )
    return frames.shuffle(2_000).map(_decoded, AUTO).batch(batch).prefetch(2)


def droid(files: Any, batch: int, epochs: int | None) -> Any:
    episodes = _episodes(files).filter(lambda steps: tf.reduce_any(steps["steps/is_last"] > 0))
    episodes = episodes.repeat(epochs).map(_chunked, AUTO)
    frames = episodes.flat_map(tf.data.Dataset.from_tensor_slices)
    frames = frames.filter(lambda frame: tf.reduce_sum(tf.abs(frame["actions"])) > 0.0)
    return frames.shuffle(2_000).map(_decoded, AUTO).batch(batch).prefetch(2)


def octo(files: Any, batch: int, epochs: int | None) -> Any:
    frames = _episodes(files).repeat(epochs).map(_chunked, AUTO)
    frames = frames.flat_map(tf.data.Dataset.from_tensor_slices).shuffle(2_000)
    return frames.map(_decoded, AUTO).batch(batch).ignore_errors().prefetch(2)


def dlimp(files: Any, batch: int, epochs: int | None) -> Any:
    types = {"images": tf.uint8, "actions": tf.float32, "terminals": tf.bool}
    shapes = {"images": [None, 32, 32, 3], "actions": [None, 7], "terminals": [None]}

    def parsed(record: Any) -> Any:
        row = tf.io.parse_single_example(record, {name: Fixed([], tf.string) for name in types})
        tensors = {name: tf.io.parse_tensor(row[name], types[name]) for name in types}
        return {name: tf.ensure_shape(value, shapes[name]) for name, value in tensors.items()}

    paths = list(files)
    random.Random(3).shuffle(paths)
    records = tf.data.TFRecordDataset(paths, num_parallel_reads=AUTO)
    trajectories = records.map(parsed, AUTO).enumerate().map(lambda _, steps: steps)
    frames = trajectories.repeat(epochs).flat_map(tf.data.Dataset.from_tensor_slices)
    return frames.shuffle(2_000).batch(batch).prefetch(2)


def atari(files: Any, batch: int, epochs: int | None) -> Any:
    specs = {
        "o_t": Fixed([4], tf.string),
        "o_tp1": Fixed([4], tf.string),
        "a_t": Fixed([4], tf.int64),
        "r_t": Fixed([4], tf.float32),
        "episode_id": Fixed([], tf.int64),
    }

    def parsed(record: Any) -> Any:
        row = tf.io.parse_single_example(record, specs)
        for name in ("o_t", "o_tp1"):
            frames = tf.reshape(tf.io.decode_raw(row[name], tf.uint8), [4, 84, 84])
            row[name] = tf.transpose(frames, [1, 2, 0])
        return row

    names = named(files).repeat(epochs).shuffle(len(files))
    records = names.interleave(read_gzip, cycle_length=4, num_parallel_calls=AUTO)
    rows = records.shuffle(200).map(parsed, num_parallel_calls=AUTO)
    return rows.batch(batch).prefetch(2)


def maxdiffusion(files: Any, batch: int, epochs: int | None) -> Any:
    names = ("latents", "hidden_states")

    def parsed(record: Any) -> Any:
        return tf.io.parse_single_example(record, {name: Fixed([], tf.string) for name in names})

    def tensors(row: Any) -> Any:
        return {name: tf.io.parse_tensor(row[name], tf.float32) for name in names}

    records = tf.data.TFRecordDataset(list(files), num_parallel_reads=AUTO).shard(1, 0)
    rows = records.map(parsed, AUTO).map(tensors, AUTO).shuffle(500)
    return rows.batch(batch, drop_remainder=True).repeat(epochs).prefetch(AUTO)


CHAINS = [
    Chain("openvla/openvla", openvla, "episodes", 32, "images"),
    Chain("Physical-Intelligence/openpi", droid, "episodes", 32, "images"),
    Chain("octo-models/octo", octo, "episodes", 32, "images"),
    Chain("kvablack/dlimp", dlimp, "trajectories", 64),
    Chain("google-deepmind/deepmind-research rl_unplugged", atari, "games, GZIP", 32, "inflating"),
    Chain("AI-Hypercomputer/maxdiffusion", maxdiffusion, "latents", 16),
]
