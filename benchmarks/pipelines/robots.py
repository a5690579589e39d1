"""Episodes: records of many steps, which become rows of their own."""

from __future__ import annotations

import random
from typing import Any

import tensorflow as tf

from benchmarks.pipelines.chain import AUTO, Chain, Fixed, named, read_gzip, read_split

# The frames in a program's buffer.
BUFFER = 250_000
CHUNK = 16


def _list(shape: list[int], dtype: Any) -> Any:
    return tf.io.FixedLenSequenceFeature(shape, dtype, allow_missing=True)


_STEPS = {
    "steps/observation/image": _list([], tf.string),
    "steps/observation/state": _list([8], tf.float32),
    "steps/action": _list([7], tf.float32),
    "steps/language_instruction": _list([], tf.string),
    "steps/is_first": _list([], tf.int64),
    "steps/is_last": _list([], tf.int64),
}


def _episodes(files: Any) -> Any:
    records = read_split(files)
    return records.map(lambda record: tf.io.parse_single_example(record, _STEPS), AUTO)


def chunked(history: int = 1) -> Any:
    """Returns a function that gives each step its own action and the next ones, and pictures."""

    def chunk(steps: Any) -> Any:
        here = tf.range(tf.shape(steps["steps/action"])[0])[:, None]
        future = tf.minimum(here + tf.range(CHUNK)[None], tf.shape(here)[0] - 1)
        past = tf.maximum(here + tf.range(1 - history, 1)[None], 0)
        image = steps["steps/observation/image"]
        return {
            "image": image if history == 1 else tf.gather(image, past),
            "state": steps["steps/observation/state"],
            "actions": tf.gather(steps["steps/action"], future),
            "task": steps["steps/language_instruction"],
        }

    return chunk


def flattened(trajectories: Any) -> Any:
    """Steps of several episodes by turns, as all of these programs flatten."""
    return trajectories.interleave(tf.data.Dataset.from_tensor_slices, num_parallel_calls=AUTO)


def _decoded(frame: Any) -> Any:
    image = tf.image.resize(tf.io.decode_jpeg(frame["image"], 3), [64, 64])
    return {**frame, "image": tf.ensure_shape(image, [64, 64, 3])}


def openvla(files: Any, batch: int, epochs: int | None) -> Any:
    def one(names: Any) -> Any:
        steps = _episodes(names).enumerate().map(lambda _, episode: episode, AUTO).repeat(epochs)
        return flattened(steps.map(chunked(), AUTO))

    half = len(files) // 2
    frames = tf.data.Dataset.sample_from_datasets(
        [one(files[:half]), one(files[half:])], [0.5, 0.5]
    )
    return frames.shuffle(BUFFER).map(_decoded, AUTO).batch(batch).prefetch(2)


def droid(files: Any, batch: int, epochs: int | None) -> Any:
    episodes = _episodes(files).filter(lambda steps: tf.reduce_any(steps["steps/is_last"] > 0))
    frames = flattened(episodes.repeat(epochs).map(chunked(), AUTO))
    frames = frames.filter(lambda frame: tf.reduce_sum(tf.abs(frame["actions"])) > 0.0)
    return frames.shuffle(BUFFER).map(_decoded, AUTO).batch(batch).prefetch(2)


def octo(files: Any, batch: int, epochs: int | None) -> Any:
    frames = flattened(_episodes(files).repeat(epochs).map(chunked(), AUTO)).shuffle(BUFFER)
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
    Chain("openvla/openvla", openvla, "episodes", 32, "images", fills_first=True),
    Chain("Physical-Intelligence/openpi", droid, "episodes", 32, "images", fills_first=True),
    Chain("octo-models/octo", octo, "episodes", 32, "images", fills_first=True),
    Chain("kvablack/dlimp", dlimp, "trajectories", 64),
    Chain("google-deepmind/deepmind-research rl_unplugged", atari, "games, GZIP", 32, "inflating"),
    Chain("AI-Hypercomputer/maxdiffusion", maxdiffusion, "latents", 16),
]
