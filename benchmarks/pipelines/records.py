"""The data that public training programs read: records of about their size and content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrfast import encode_example

Random = np.random.Generator
Row = dict[str, Any]


class Data(NamedTuple):
    """The content of a record, the number of records, and their compression.

    A program that does not repeat its data begins an iteration for each epoch, which takes
    TensorFlow 10 to 30 ms. With enough records, an epoch takes far longer, as with real data.
    """

    record: Callable[[Random, int], bytes]
    count: int
    compression: str = ""
    distinct: int = 256  # the content repeats: no reader's speed depends on it


def write_data(name: str, folder: Path, count: int | None = None, files: int = 8) -> list[str]:
    """Writes the records of a kind of data into `files` files. Returns the file names."""
    data = DATA[name]
    count = data.count if count is None else count
    random = np.random.default_rng(7)
    pool = [data.record(random, number) for number in range(min(count, data.distinct))]
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for file in range(files):
        names.append(str(folder / f"train-{file:05}-of-{files:05}"))
        options = tf.io.TFRecordOptions(compression_type=data.compression, compression_level=1)
        with tf.io.TFRecordWriter(names[-1], options) as writer:
            for number in range(file * count // files, (file + 1) * count // files):
                writer.write(pool[number % len(pool)])
    return names


def _example(row: Callable[[Random, int], Row]) -> Callable[[Random, int], bytes]:
    return lambda random, number: encode_example(row(random, number))


def _clicks(random: Random, number: int) -> Row:
    dense = random.random(13, np.float32)
    return {"label": number % 2, "dense": dense, "cat": random.integers(0, 1 << 40, 26)}


def _click_sequences(random: Random, number: int) -> Row:
    length = int(random.integers(5, 90))
    names = ("item", "category", "shop")
    return {
        "label": number % 2,
        "user": int(random.integers(1 << 30)),
        "target": random.integers(0, 1 << 20, 3),
        **{f"{name}_sequence": random.integers(0, 1 << 20, length) for name in names},
    }


def _ranked(random: Random, number: int) -> Row:
    documents = [
        encode_example({"score": random.random(32, np.float32), "relevance": place})
        for place in range(int(random.integers(4, 12)))
    ]
    context = encode_example({"query": random.integers(0, 30_000, 12), "id": number})
    return {"context": context, "documents": documents}


def _masked_tokens(random: Random, number: int) -> Row:
    return {
        "input_ids": random.integers(0, 30_522, 128),
        "input_mask": np.ones(128, np.int64),
        "segment_ids": random.integers(0, 2, 128),
        "masked_lm_positions": random.integers(0, 128, 20),
        "masked_lm_ids": random.integers(0, 30_522, 20),
        "masked_lm_weights": np.ones(20, np.float32),
        "next_sentence_labels": number % 2,
    }


def _texts(random: Random, number: int) -> Row:
    inputs = random.integers(1, 32_000, int(random.integers(10, 200)))
    return {"inputs": inputs, "targets": random.integers(1, 32_000, int(random.integers(5, 80)))}


def _dialogues(random: Random, number: int) -> Row:
    def said() -> bytes:
        letters = random.integers(97, 123, int(random.integers(20, 120)), np.uint8)
        return letters.tobytes()

    earlier = {f"context/{place}": said() for place in range(int(random.integers(0, 10)))}
    return {"context": said(), "response": said(), **earlier}


def _long_texts(random: Random, number: int) -> Row:
    return {"text": random.integers(1, 50_257, 1024)}


def _picture(random: Random, side: int = 256) -> Any:
    """A smooth picture, which compresses about as photos do."""
    coarse = random.integers(0, 256, (1, side // 8, side // 8, 3)).astype(np.float32)
    smooth = tf.image.resize(coarse, (side, side), "bicubic")[0]
    return tf.cast(tf.clip_by_value(smooth, 0, 255), tf.uint8)


def _jpeg(random: Random, side: int = 256) -> bytes:
    return bytes(tf.io.encode_jpeg(_picture(random, side), quality=90).numpy())


def _photo(random: Random, number: int) -> Row:
    boxes = int(random.integers(0, 3))
    corners = np.sort(random.random((2, 2, boxes), np.float32), axis=0)
    return {
        "image/encoded": _jpeg(random),
        "image/class/label": number % 1000 + 1,
        "image/class/text": b"class %d" % (number % 1000),
        "image/object/bbox/ymin": corners[0, 0],
        "image/object/bbox/xmin": corners[0, 1],
        "image/object/bbox/ymax": corners[1, 0],
        "image/object/bbox/xmax": corners[1, 1],
    }


def _detection(random: Random, number: int) -> Row:
    boxes = int(random.integers(1, 20))
    corners = np.sort(random.random((2, 2, boxes), np.float32), axis=0)
    return {
        "image/encoded": _jpeg(random),
        "image/source_id": b"%d" % number,
        "image/height": 256,
        "image/width": 256,
        "image/object/bbox/ymin": corners[0, 0],
        "image/object/bbox/xmin": corners[0, 1],
        "image/object/bbox/ymax": corners[1, 0],
        "image/object/bbox/xmax": corners[1, 1],
        "image/object/class/label": random.integers(0, 90, boxes),
        "image/object/area": random.random(boxes, np.float32),
        "image/object/is_crowd": random.integers(0, 2, boxes),
    }


def _segmentation(random: Random, number: int) -> Row:
    mask = random.integers(0, 19, (16, 16)).repeat(16, 0).repeat(16, 1).astype(np.uint8)
    png = tf.io.encode_png(mask[..., None]).numpy()
    return {"image/encoded": _jpeg(random), "image/segmentation/class/encoded": png}


def _pixels(random: Random, number: int) -> Row:
    return {"shape": [3, 64, 64], "data": random.bytes(3 * 64 * 64)}


def _pileup(random: Random, number: int) -> Row:
    image = random.choice(np.array([0, 40, 254], np.uint8), (100, 221, 6))
    return {
        "image/encoded": image.tobytes(),
        "image/shape": image.shape,
        "variant/encoded": random.bytes(60),
        "label": number % 3,
    }


def _subreads(random: Random, number: int) -> Row:
    rows = random.integers(0, 5, (85, 100, 1)).astype(np.float32)
    label = random.integers(0, 5, 100).astype(np.float32)
    return {
        "subreads/encoded": rows.tobytes(),
        "subreads/shape": rows.shape,
        "label/encoded": label.tobytes(),
        "label/shape": label.shape,
    }


def _genome(random: Random, number: int) -> Row:
    coverage = random.poisson(2, (64, 32)).astype(np.float16)
    sequence = random.integers(0, 4, 8192).astype(np.uint8)
    return {"sequence": sequence.tobytes(), "target": coverage.tobytes()}


def _tracks(random: Random, number: int) -> Row:
    tensors = {
        "dna": random.integers(0, 2, (2048, 4)).astype(bool),
        "rna_seq": random.poisson(1, (2048, 4)).astype(np.float32),
        "position": np.array(number, np.int64),
    }
    return {name: tf.io.serialize_tensor(value).numpy() for name, value in tensors.items()}


def _cosmology(random: Random, number: int) -> Row:
    volume = random.poisson(1, (24, 24, 24, 4)).astype(np.int16)
    return {"x": volume.tobytes(), "y": random.random(4, np.float32)}


def _volume(random: Random, number: int) -> Row:
    volume = random.random((32, 32, 32, 4), np.float32)
    label = random.integers(0, 4, (32, 32, 32)).astype(np.uint8)
    shapes = {"X_shape": volume.shape, "Y_shape": label.shape}
    return {"X": volume.tobytes(), "Y": label.tobytes(), **shapes, "mean": [0.1, 0.2, 0.3, 0.4]}


def _radar(random: Random, number: int) -> Row:
    frames = random.gamma(0.1, 1, (12, 64, 64)).astype(np.float16)
    return {"radar_frames": frames.tobytes(), "sample_prob": float(random.random())}


def _mesh(random: Random, number: int) -> Row:
    steps, nodes = 40, 200
    fields = {
        "cells": random.integers(0, nodes, (1, 360, 3)).astype(np.int32),
        "mesh_pos": random.random((1, nodes, 2), np.float32),
        "node_type": random.integers(0, 6, (1, nodes, 1)).astype(np.int32),
        "velocity": random.random((steps, nodes, 2), np.float32),
    }
    return {name: [value.tobytes()] for name, value in fields.items()}


def _bytes(value: bytes) -> Any:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def _ints(*values: int) -> Any:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def _sequence(context: Row, lists: dict[str, list[bytes]]) -> bytes:
    """A SequenceExample whose steps are strings."""
    steps = {
        name: tf.train.FeatureList(feature=map(_bytes, values)) for name, values in lists.items()
    }
    return bytes(
        tf.train.SequenceExample(
            context=tf.train.Features(feature=context),
            feature_lists=tf.train.FeatureLists(feature_list=steps),
        ).SerializeToString()
    )


def _particles(random: Random, number: int) -> bytes:
    steps, particles = 30, 60
    position = [random.random(particles * 2, np.float32).tobytes() for _ in range(steps)]
    kinds = random.integers(0, 9, particles).tobytes()
    context = {"key": _ints(number), "particle_type": _bytes(kinds)}
    return _sequence(context, {"position": position})


def _video(random: Random, number: int) -> bytes:
    """Features of a video's frames, one a second."""
    frames = int(random.integers(120, 301))
    context = {
        "id": _bytes(b"%06d" % number),
        "labels": _ints(*random.integers(0, 3_862, 3).tolist()),
    }
    sizes = {"rgb": 1_024, "audio": 128}
    lists = {name: [random.bytes(size) for _ in range(frames)] for name, size in sizes.items()}
    return _sequence(context, lists)


def _audio(random: Random, number: int) -> Row:
    return {
        "audio": random.random(16_000, np.float32),
        "f0_hz": random.random(250, np.float32),
        "f0_confidence": random.random(250, np.float32),
        "loudness_db": random.random(250, np.float32),
    }


MOTION = {
    f"state/{when}/{what}": steps
    for when, steps in (("past", 10), ("current", 1), ("future", 80))
    for what in ("x", "y", "z", "length", "width", "height", "velocity_x", "velocity_y", "bbox_yaw")
}


def _motion(random: Random, number: int) -> Row:
    agents = 16
    row: Row = {name: random.random(agents * steps, np.float32) for name, steps in MOTION.items()}
    row["state/id"] = random.random(agents, np.float32)
    row["state/is_sdc"] = np.arange(agents) == 0
    row["roadgraph_samples/xyz"] = random.random(500 * 3, np.float32)
    row["roadgraph_samples/type"] = random.integers(0, 20, 500)
    row["scenario/id"] = b"%d" % number
    return row


def _episode(random: Random, number: int) -> Row:
    """An episode as the data sets of robots hold it: one record, whose steps are flattened."""
    steps = int(random.integers(5, 40))
    return {
        "steps/observation/image": [_jpeg(random, 64) for _ in range(steps)],
        "steps/observation/state": random.random(steps * 8, np.float32),
        "steps/action": random.random(steps * 7, np.float32),
        "steps/language_instruction": [b"pick up block %d" % number] * steps,
        "steps/is_first": [int(step == 0) for step in range(steps)],
        "steps/is_last": [int(step == steps - 1) for step in range(steps)],
    }


def _trajectory(random: Random, number: int) -> Row:
    tensors = {
        "images": random.integers(0, 256, (10, 32, 32, 3)).astype(np.uint8),
        "actions": random.random((10, 7), np.float32),
        "terminals": np.arange(10) == 9,
    }
    return {name: tf.io.serialize_tensor(value).numpy() for name, value in tensors.items()}


def _atari(random: Random, number: int) -> Row:
    steps = 4
    frames = random.integers(0, 4, (2 * steps, 84 * 84)).astype(np.uint8)
    return {
        "o_t": [frame.tobytes() for frame in frames[:steps]],
        "o_tp1": [frame.tobytes() for frame in frames[steps:]],
        "a_t": random.integers(0, 18, steps),
        "r_t": random.random(steps, np.float32),
        "episode_id": number,
    }


def _notes(random: Random, number: int) -> Row:
    length = int(random.integers(20, 200))
    return {"id": b"%d" % number, "pitches": random.integers(21, 109, length)}


def _latents(random: Random, number: int) -> Row:
    tensors = {
        "latents": random.random((16, 16, 4), np.float32),
        "hidden_states": random.random((16, 64), np.float32),
    }
    return {name: tf.io.serialize_tensor(value).numpy() for name, value in tensors.items()}


def _graph(random: Random, number: int) -> Row:
    nodes, edges = int(random.integers(10, 40)), int(random.integers(20, 90))
    return {
        "nodes/paper.#size": [nodes],
        "nodes/paper.feat": random.random(nodes * 16, np.float32),
        "nodes/paper.labels": random.integers(0, 9, nodes),
        "edges/cites.#size": [edges],
        "edges/cites.#source": random.integers(0, nodes, edges),
        "edges/cites.#target": random.integers(0, nodes, edges),
    }


def _frame(random: Random, number: int) -> bytes:
    """A message of another protobuf than Example."""
    return b"%08d" % number + random.bytes(16_000)


DATA = {
    "clicks": Data(_example(_clicks), 40_000),
    "clicks, GZIP": Data(_example(_clicks), 40_000, "GZIP"),
    "click sequences": Data(_example(_click_sequences), 200_000),
    "ranked documents": Data(_example(_ranked), 8_000),
    "masked tokens": Data(_example(_masked_tokens), 16_000),
    "texts": Data(_example(_texts), 20_000),
    "dialogues": Data(_example(_dialogues), 20_000),
    "long texts": Data(_example(_long_texts), 40_000),
    "photos": Data(_example(_photo), 768, distinct=64),
    "detection": Data(_example(_detection), 768, distinct=64),
    "segmentation": Data(_example(_segmentation), 768, distinct=64),
    "pixels": Data(_example(_pixels), 8_000),
    "pileups, GZIP": Data(_example(_pileup), 800, "GZIP", distinct=64),
    "subreads, GZIP": Data(_example(_subreads), 2_000, "GZIP"),
    "genome, ZLIB": Data(_example(_genome), 4_000, "ZLIB"),
    "tracks, GZIP": Data(_example(_tracks), 1_600, "GZIP", distinct=64),
    "cosmology": Data(_example(_cosmology), 800, distinct=64),
    "volumes": Data(_example(_volume), 240, distinct=64),
    "radar, GZIP": Data(_example(_radar), 800, "GZIP", distinct=64),
    "meshes": Data(_example(_mesh), 800, distinct=64),
    "particles": Data(_particles, 1_600, distinct=64),
    "videos": Data(_video, 400, distinct=64),
    "audio": Data(_example(_audio), 2_000, distinct=64),
    "motion": Data(_example(_motion), 2_000, distinct=64),
    "episodes": Data(_example(_episode), 400, distinct=32),
    "trajectories": Data(_example(_trajectory), 2_000, distinct=64),
    "games, GZIP": Data(_example(_atari), 2_000, "GZIP", distinct=64),
    "notes": Data(_example(_notes), 8_000),
    "latents": Data(_example(_latents), 4_000),
    "graphs": Data(_example(_graph), 8_000),
    "frames": Data(_frame, 4_000, distinct=64),
}
