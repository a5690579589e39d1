"""tfr.Image: TensorFlow's decoders are the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from image_records import GOLDEN, loader_of, rows_of, windows, write_images
from odd_pictures import odd_pictures
from tfrfast import _native

tf = pytest.importorskip("tensorflow")

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(
        not _native.DECODES_IMAGES, reason="tfrfast was built without libjpeg-turbo and libpng"
    ),
]


def photo(height: int, width: int, **options: Any) -> bytes:
    values = np.random.default_rng(height).integers(0, 256, (height // 16 + 2, width // 16 + 2, 3))
    smooth = tf.image.resize(values.astype(np.float32), (height, width), method="bicubic")
    noisy = smooth + np.random.default_rng(width).normal(0, 8, (height, width, 1))
    image = np.clip(noisy, 0, 255).astype(np.uint8)
    return tf.io.encode_jpeg(image, quality=90, **options).numpy()


def weights(kind: str, pixels: int, start: float, extent: float, count: int) -> Any:
    """The share of each source pixel in each result pixel, by the definition of the filter."""
    step = extent / count
    at = np.arange(pixels)[np.newaxis]
    center = (start + (np.arange(count) + 0.5) * step)[:, np.newaxis]
    if kind == "area":
        shares = np.minimum(at + 1, center + step / 2) - np.maximum(at, center - step / 2)
    else:
        shares = 1 - np.abs(at + 0.5 - center) / max(step, 1)
    inside = (at >= np.floor(start)) & (at <= np.ceil(start + extent) - 1)
    shares = np.where(inside, np.maximum(shares, 0), 0)
    return shares / shares.sum(1, keepdims=True)


def resized(image: bytes, crop: Any, size: tuple[int, int], kind: str) -> Any:
    """Returns the window of TensorFlow's pixels at the scale that docs/images.md names."""
    scale = 1
    while (
        scale < 8 and crop["height"] >= 2 * scale * size[0] and crop["width"] >= 2 * scale * size[1]
    ):
        scale *= 2
    whole = tf.io.decode_jpeg(image, 3, ratio=scale, dct_method="INTEGER_ACCURATE").numpy()
    down = weights(kind, whole.shape[0], crop["top"] / scale, crop["height"] / scale, size[0])
    across = weights(kind, whole.shape[1], crop["left"] / scale, crop["width"] / scale, size[1])
    rows = np.tensordot(down, whole.astype(float), (1, 0))
    return np.tensordot(rows, across, (1, 1)).transpose(0, 2, 1)


@pytest.fixture(scope="module")
def photos() -> list[bytes]:
    plain = [photo(375, 500), photo(500, 333), photo(64, 90), photo(900, 1300)]
    return [*plain, photo(301, 451, progressive=True), photo(40, 333, chroma_downsampling=False)]


@pytest.mark.parametrize("kind", ["bilinear", "area"])
@pytest.mark.parametrize("size", [(224, 224), (64, 96), (200, 20)], ids=str)
def test_pixels_are_within_a_level_of_a_reference_resize(
    tmp_path: Path, photos: list[bytes], kind: Any, size: tuple[int, int]
) -> None:
    path = tmp_path / "a.tfrecord"
    with tfr.Writer(path) as writer:
        for image in photos:
            writer.write(tfr.encode_example({"x": image}))
    for crop in (None, "center", "random"):
        features = {"x": tfr.Image(size, crop=crop, resize=kind, dtype="float32")}
        for batch in tfr.Loader(path, 2, features=features, seed=1):
            for row, (number, found) in enumerate(zip(batch.indices, batch["x"], strict=True)):
                window = {name: int(values[row]) for name, values in batch.crops["x"].items()}
                expected = resized(photos[number], window, size, kind)
                assert np.abs(found - expected).max() <= 1, (crop, number, window)


def decoded_by_tensorflow(name: str, picture: bytes, channels: int) -> Any:
    try:
        if name.endswith(".png"):
            return tf.io.decode_png(picture, channels).numpy().astype(int)
        options = {"channels": channels, "dct_method": "INTEGER_ACCURATE"}
        return tf.io.decode_jpeg(picture, **options).numpy().astype(int)
    except tf.errors.InvalidArgumentError:
        return None


@pytest.mark.parametrize("name", odd_pictures())
def test_every_format_becomes_the_pixels_of_tensorflow_or_is_refused(name: str) -> None:
    picture = odd_pictures()[name]
    record = tfr.encode_example({"x": picture})
    colors, grey = (decoded_by_tensorflow(name, picture, channels) for channels in (3, 1))
    if colors is None:
        with pytest.raises(tfr.FeatureError):
            tfr.parse_example([record], {"x": tfr.Image()})
        return
    assert np.array_equal(tfr.parse_example([record], {"x": tfr.Image()})["x"][0], colors)
    found = tfr.parse_example([record], {"x": tfr.Image(channels=1)})["x"][0]
    if name.endswith(".png"):
        # TensorFlow rounds down, and mixes linear light if the gamma is known. Pillow does not.
        luma = (colors @ [19595, 38470, 7471] + 32768) >> 16
        assert np.array_equal(found[..., 0], luma)
        assert "gamma" in name or np.abs(found - grey).max() <= 1
    elif grey is not None:  # TensorFlow makes no grey of inks
        assert np.array_equal(found, grey)


def test_what_tensorflow_takes_for_a_jpeg_is_one_here_and_what_it_refuses_is_damaged() -> None:
    image = (GOLDEN / "restarts.jpg").read_bytes()
    start = image.index(b"\xff\xda")
    sizes = image.index(b"\xff\xc0") + 5
    odd = {
        "bytes after the end": image + b"garbage",
        "fill before a marker": image[:2] + b"\xff" * 5 + image[2:],
        "Adobe's marker": image[:2]
        + b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"
        + image[2:],
        "a flipped byte": image[: start + 60]
        + bytes([image[start + 60] ^ 85])
        + image[start + 61 :],
        "no restart marker": image.replace(b"\xff\xd1", b"", 1),
        "too few rows": image[:sizes] + b"\x00\x40" + image[sizes + 2 :],
        "no rows": image[:sizes] + b"\x00\x00" + image[sizes + 2 :],
        "12 bits": image[: sizes - 1] + b"\x0c" + image[sizes:],
        "a cut end": image[:-20],
        "no pixels": image[:start],
        "bytes before the start": b"\x00" + image,
    }
    for kind, jpeg in odd.items():
        record = tfr.encode_example({"x": jpeg})
        try:
            expected = tf.io.decode_jpeg(jpeg, 3, dct_method="INTEGER_ACCURATE").numpy()
        except tf.errors.InvalidArgumentError:
            with pytest.raises(tfr.FeatureError):
                tfr.parse_example([record], {"x": tfr.Image()})
            continue
        found = tfr.parse_example([record], {"x": tfr.Image()})["x"][0]
        assert np.abs(found.astype(int) - expected).max() <= 1, kind


def test_a_dataset_of_a_loader_has_the_images_of_the_loader(tmp_path: Path) -> None:
    loader = loader_of(write_images(tmp_path), remainder="drop")
    dataset = loader.to_tf_dataset(epochs=2, with_crops=True)
    assert dataset.element_spec[0]["sized"].shape.as_list() == [5, 12, 10, 3]
    assert dataset.element_spec[0]["own"].shape.as_list() == [5, None, None, 3]
    batches = [batch for _ in range(2) for batch in loader]
    for batch, (element, crops) in zip(batches, dataset, strict=True):
        pictures = [picture.to_tensor() for picture in element["own"]]
        assert rows_of(element | {"own": pictures}) == rows_of(batch)
        assert windows(crops["own"]) == windows(batch.crops["own"])


def test_keras_has_the_images_of_the_loader(tmp_path: Path) -> None:
    loader = loader_of(write_images(tmp_path))
    batch = next(iter(loader_of(loader.reader)))
    inputs, labels = loader.to_keras(features=["sized", "own"], label="number")[0]
    pictures = [picture.to_tensor() for picture in inputs["own"]]
    assert rows_of({**inputs, "own": pictures, "number": labels}) == rows_of(batch)


def test_a_fused_parse_gives_pictures_of_their_own_size(tmp_path: Path) -> None:
    features = {"own": tfr.Image(), "sized": tfr.Image((4, 6))}
    parsed = tfr.TFRecordDataset([write_images(tmp_path)]).batch(4).parse_example(features)
    element = next(iter(parsed))
    assert element["own"][1].to_tensor().shape == (36, 52, 3)
    assert element["sized"].shape == (4, 4, 6, 3)


def test_a_fused_parse_decodes_images_but_draws_no_windows(
    tmp_path: Path, photos: list[bytes]
) -> None:
    path = str(tmp_path / "a.tfrecord")
    with tfr.Writer(path) as writer:
        for image in [*photos, photos[0][:2000]]:
            writer.write(tfr.encode_example({"x": image}))
    features = {"x": tfr.Image((40, 50), crop="center")}
    records = [tfr.encode_example({"x": image}) for image in photos]
    whole = tfr.TFRecordDataset([path]).take(len(photos)).batch(3).parse_example(features)
    found = np.concatenate([element["x"].numpy() for element in whole])
    assert np.array_equal(found, tfr.parse_example(records, features)["x"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="it ends early"):
        list(tfr.TFRecordDataset([path]).batch(3).parse_example(features))
    with pytest.raises(ValueError, match="takes its draws from the order of a Loader"):
        tfr.TFRecordDataset([path]).batch(3).parse_example(
            {"x": tfr.Image((40, 50), crop="random")}
        )
