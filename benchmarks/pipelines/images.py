"""Photos that are decoded and distorted."""

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
    parallel_interleave,
    read,
    read_split,
)

_SIDE = 96
_CORNERS = ("ymin", "xmin", "ymax", "xmax")
_PHOTO = {
    "image/encoded": Fixed([], tf.string, ""),
    "image/class/label": Fixed([], tf.int64, -1),
}
_BOXED_PHOTO = _PHOTO | {f"image/object/bbox/{corner}": Variable(tf.float32) for corner in _CORNERS}
_DETECTION: dict[str, Any] = {
    "image/encoded": Fixed([], tf.string),
    "image/source_id": Fixed([], tf.string, ""),
    "image/height": Fixed([], tf.int64, -1),
    "image/width": Fixed([], tf.int64, -1),
    **{f"image/object/bbox/{corner}": Variable(tf.float32) for corner in _CORNERS},
    "image/object/class/label": Variable(tf.int64),
    "image/object/area": Variable(tf.float32),
    "image/object/is_crowd": Variable(tf.int64),
}

#: Whether photos are cut and mirrored at random, as programs do.
distorts = True


def _cut(encoded: Any, boxes: Any) -> Any:
    """Returns a random part of a photo that shows a tenth of a box, mirrored or not. Returns the
    whole photo if `distorts` is False.
    """
    if not distorts:
        return tf.image.resize(tf.io.decode_jpeg(encoded, 3), [_SIDE, _SIDE])
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(encoded),
        boxes,
        min_object_covered=0.1,
        area_range=(0.05, 1.0),
        use_image_if_no_bounding_boxes=True,
    )
    window = tf.concat([begin[:2], size[:2]], 0)
    image = tf.image.decode_and_crop_jpeg(encoded, window, channels=3)
    return tf.image.random_flip_left_right(tf.image.resize(image, [_SIDE, _SIDE]))


def _boxes(row: Any) -> Any:
    corners = [dense(row[f"image/object/bbox/{corner}"]) for corner in _CORNERS]
    return tf.stack(corners, axis=-1)


def _boxed_photo(record: Any) -> Any:
    row = tf.io.parse_single_example(record, _BOXED_PHOTO)
    image = _cut(row["image/encoded"], _boxes(row)[None])
    return image / 255.0, tf.cast(row["image/class/label"], tf.int32) - 1


def _photo(record: Any) -> Any:
    row = tf.io.parse_single_example(record, _PHOTO)
    image = _cut(row["image/encoded"], tf.zeros([1, 0, 4]))
    return image - [123.7, 116.3, 103.5], tf.one_hot(row["image/class/label"] - 1, 1000)


def _scanned(record: Any) -> Any:
    row = tf.io.parse_single_example(record, _PHOTO)
    image = tf.ensure_shape(tf.io.decode_jpeg(row["image/encoded"], 3), [256, 256, 3])
    return tf.cast(image, tf.float32) / 127.5 - 1.0, row["image/class/label"]


def _detection(record: Any) -> Any:
    row = tf.io.parse_single_example(record, _DETECTION)
    image = tf.image.resize(tf.io.decode_jpeg(row["image/encoded"], 3), [_SIDE, _SIDE]) / 255.0
    return image, _boxes(row), dense(row["image/object/class/label"])


def _padded_detection(record: Any) -> Any:
    image, boxes, labels = _detection(record)
    missing = 40 - tf.shape(boxes)[0]
    boxes = tf.ensure_shape(tf.pad(boxes, [[0, missing], [0, 0]]), [40, 4])
    return image, boxes, tf.ensure_shape(tf.pad(labels, [[0, missing]]), [40])


def model_garden(files: Any, batch: int, epochs: int | None) -> Any:
    names = named(files).shuffle(len(files)).shard(1, 0).repeat(epochs)
    records = names.interleave(
        lambda name: tf.data.TFRecordDataset(name), cycle_length=10, num_parallel_calls=AUTO
    )
    rows = records.shuffle(500).map(_photo, num_parallel_calls=AUTO)
    return rows.batch(batch, drop_remainder=True).prefetch(AUTO)


def efficientnet(files: Any, batch: int, epochs: int | None) -> Any:
    def opened(name: Any) -> Any:
        return tf.data.TFRecordDataset(name, buffer_size=8 << 20)

    names = listed(files, shuffle=False).shard(1, 0).shuffle(len(files)).repeat(epochs)
    records = names.apply(parallel_interleave(opened, cycle_length=8, sloppy=True)).shuffle(256)
    batches = tf.data.experimental.map_and_batch(
        _boxed_photo, batch_size=batch, num_parallel_calls=AUTO, drop_remainder=True
    )
    return records.apply(batches).prefetch(AUTO)


def densenet(files: Any, batch: int, epochs: int | None) -> Any:
    names = listed(files).shuffle(len(files)).repeat(epochs)
    records = names.apply(parallel_interleave(read, cycle_length=4)).shuffle(256)
    rows = records.map(_boxed_photo, num_parallel_calls=128)
    return rows.batch(batch, drop_remainder=True).prefetch(2)


def efficientdet(files: Any, batch: int, epochs: int | None) -> Any:
    names = listed(files, shuffle=True).shard(1, 0).repeat(epochs)
    records = names.interleave(
        lambda name: tf.data.TFRecordDataset(name).prefetch(1),
        num_parallel_calls=AUTO,
        deterministic=False,
    )
    rows = records.shuffle(64).map(_padded_detection, num_parallel_calls=AUTO)
    return rows.prefetch(batch).batch(batch, drop_remainder=True).prefetch(AUTO)


def efficientnet_v2(files: Any, batch: int, epochs: int | None) -> Any:
    names = named(files).shard(1, 0).shuffle(len(files)).repeat(epochs)
    records = names.interleave(read, cycle_length=8, num_parallel_calls=AUTO)
    rows = records.shuffle(256).map(_photo, num_parallel_calls=AUTO)
    return rows.batch(batch, drop_remainder=True).prefetch(AUTO)


def resnet_of_mlperf(files: Any, batch: int, epochs: int | None) -> Any:
    names = named(files).shard(1, 0).shuffle(len(files))
    records = names.interleave(tf.data.TFRecordDataset, cycle_length=10, num_parallel_calls=AUTO)
    rows = records.prefetch(batch).shuffle(10_000).repeat(epochs)
    rows = rows.map(_boxed_photo, num_parallel_calls=AUTO)
    return rows.batch(batch, drop_remainder=True).prefetch(AUTO)


def deeplab(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(record: Any) -> Any:
        specs = {
            "image/encoded": Fixed([], tf.string),
            "image/segmentation/class/encoded": Fixed([], tf.string),
        }
        row = tf.io.parse_single_example(record, specs)
        image = tf.image.resize(tf.io.decode_jpeg(row["image/encoded"], 3), [_SIDE, _SIDE])
        mask = tf.io.decode_png(row["image/segmentation/class/encoded"], 1)
        return image, tf.image.resize(mask, [_SIDE, _SIDE], "nearest")

    names = listed(files).shuffle(len(files)).repeat(epochs)
    records = names.interleave(read, cycle_length=4, num_parallel_calls=AUTO)
    rows = records.shuffle(200).map(parsed, num_parallel_calls=AUTO)
    return rows.batch(batch, drop_remainder=True).prefetch(AUTO)


def centernet(files: Any, batch: int, epochs: int | None) -> Any:
    def parsed(record: Any) -> Any:
        return tf.io.parse_single_example(record, _DETECTION)

    def decoded(row: Any) -> Any:
        image = tf.image.resize(tf.io.decode_jpeg(row["image/encoded"], 3), [_SIDE, _SIDE])
        return {"image": image, "boxes": _boxes(row)}

    rows = tf.data.TFRecordDataset(files).shard(1, 0).map(parsed, AUTO).map(decoded, AUTO)
    rows = rows.map(lambda row: {**row, "image": row["image"] / 255.0}, AUTO).cache()
    rows = rows.repeat(epochs).shuffle(200)
    shapes = {"image": [_SIDE, _SIDE, 3], "boxes": [40, 4]}
    return rows.padded_batch(batch, shapes, drop_remainder=True).prefetch(AUTO)


def chromosomes(files: Any, batch: int, epochs: int | None) -> Any:
    records = named(files).interleave(read, cycle_length=4, num_parallel_calls=AUTO)
    return records.map(_scanned, num_parallel_calls=AUTO).batch(batch).prefetch(AUTO)


def tfds_photos(files: Any, batch: int, epochs: int | None) -> Any:
    records = read_split(files)
    rows = records.repeat(epochs).shuffle(500).map(_photo, num_parallel_calls=AUTO)
    return rows.batch(batch, drop_remainder=True).prefetch(2)


def convnets(files: Any, batch: int, epochs: int | None) -> Any:
    names = named(files).shard(1, 0)
    records = names.interleave(read, cycle_length=10, block_length=8)
    rows = records.shuffle(4_096).repeat(epochs).map(_boxed_photo, num_parallel_calls=AUTO)
    return rows.batch(batch, drop_remainder=True).prefetch(AUTO)


CHAINS = [
    Chain("tensorflow/models", model_garden, "photos", 32, "images"),
    Chain("tensorflow/tpu efficientnet", efficientnet, "photos", 32, "images"),
    Chain("tensorflow/tpu densenet", densenet, "photos", 32, "images"),
    Chain("google/automl efficientdet", efficientdet, "detection", 16, "images"),
    Chain("google/automl efficientnetv2", efficientnet_v2, "photos", 32, "images"),
    Chain("mlcommons/training resnet", resnet_of_mlperf, "photos", 32, "images"),
    Chain("google-research/deeplab2", deeplab, "segmentation", 16, "images"),
    Chain("google-research/scenic centernet", centernet, "detection", 16, "images"),
    Chain("google-research/scenic tasseo", chromosomes, "photos", 32, "images"),
    Chain(
        "google-research/big_vision; mlcommons/algorithmic-efficiency",
        tfds_photos,
        "photos",
        32,
        "images",
    ),
    Chain("NVIDIA/DeepLearningExamples ConvNets", convnets, "photos", 32, "images"),
]
