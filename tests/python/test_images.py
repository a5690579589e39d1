"""tfr.Image: encoded images of records as pixels, cut by draws that resume."""

from __future__ import annotations

import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from image_records import COUNT, GOLDEN, NAMES, SIZED, loader_of, windows, write_images
from odd_pictures import differing_pictures, exif, odd_pictures, with_chunk
from record_files import write_rows
from reference_order import siphash24
from tfrfast import _native

pytestmark = pytest.mark.skipif(
    not _native.DECODES_IMAGES, reason="tfrfast was built without libjpeg-turbo and libpng"
)

RANDOM = SIZED


def parse(image: str | bytes, **options: Any) -> tfr.Batch:
    if isinstance(image, str):
        image = (GOLDEN / image).read_bytes()
    spec = tfr.Image(**{"size": (36, 52)} | options)
    return tfr.parse_example([tfr.encode_example({"x": image})], {"x": spec})


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("images") / "a.tfrecord"
    with tfr.Writer(path) as writer:
        for number in range(COUNT):
            image = (GOLDEN / NAMES[number % len(NAMES)]).read_bytes()
            writer.write(tfr.encode_example({"x": image, "number": number}))
    return str(path)


def rows_of(loader: tfr.Loader, epochs: int = 1) -> dict[tuple[int, int], tuple[Any, bytes]]:
    """The window and the pixels of each record in each epoch."""
    return {
        (epoch, int(number)): (crop, pixels.tobytes())
        for epoch in range(epochs)
        for batch in loader
        for number, crop, pixels in zip(
            batch.indices, windows(batch.crops["x"]), batch["x"], strict=True
        )
    }


@pytest.fixture(scope="module")
def expected(file: str) -> dict[tuple[int, int], tuple[Any, bytes]]:
    return rows_of(tfr.Loader(file, 5, features={"x": RANDOM}, seed=3, threads=1), epochs=2)


def test_an_image_keeps_its_pixels_in_its_own_size() -> None:
    y, x = np.mgrid[0:36, 0:52]
    color = np.stack([x * 5 % 256, y * 7 % 256, (x + y) * 3 % 256], -1).astype(np.uint8)
    batch = parse("color.png")
    assert np.array_equal(batch["x"][0], color)
    assert windows(batch.crops["x"]) == [(0, 0, 36, 52, 36, 52, 0, 0)]
    planes = parse("color.png", layout="CHW", dtype="float32")["x"]
    assert planes.dtype == np.float32
    assert np.array_equal(planes[0], color.transpose(2, 0, 1))
    luma = (color.astype(int) @ [19595, 38470, 7471] + 32768) >> 16
    assert np.array_equal(parse("color.png", channels=1)["x"][0, ..., 0], luma)


def test_a_photo_is_turned_upright_only_if_asked_to() -> None:
    upright = parse("subsampled.jpg", size=(18, 26))["x"][0].astype(int)
    stored = parse("turned_6.jpg", size=(18, 26))["x"][0].astype(int)
    assert np.abs(stored - upright).mean() < 8
    turned = parse("turned_6.jpg", size=(26, 18), upright=True)
    assert np.array_equal(turned["x"][0], np.rot90(stored, -1))
    assert windows(turned.crops["x"])[0][4:6] == (52, 36)
    half = parse("turned_3.jpg", size=(18, 26), upright=True, layout="CHW", dtype="float32")["x"]
    plain = parse("turned_3.jpg", size=(18, 26), layout="CHW", dtype="float32")["x"]
    assert np.array_equal(half, plain[:, :, ::-1, ::-1])


@pytest.mark.parametrize("last", [False, True])
def test_a_png_is_turned_upright_by_its_exif_wherever_it_stands(last: bool) -> None:
    whole = (GOLDEN / "color.png").read_bytes()
    plain = parse(whole, size=None)["x"][0]
    turned = plain.transpose(1, 0, 2)
    upright = [plain, plain[:, ::-1], plain[::-1, ::-1], plain[::-1]]
    upright += [turned, turned[:, ::-1], turned[::-1, ::-1], turned[::-1]]
    for number, expected in enumerate(upright):
        image = with_chunk(whole, b"eXIf", exif(number + 1), last=last)
        assert np.array_equal(parse(image, size=None, upright=True)["x"][0], expected)
        assert np.array_equal(parse(image, size=None)["x"][0], plain)


def test_other_data_before_a_photos_exif_does_not_hide_it() -> None:
    whole = (GOLDEN / "turned_6.jpg").read_bytes()
    xmp = b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta/>"
    both = whole[:2] + b"\xff\xe1" + (len(xmp) + 2).to_bytes(2, "big") + xmp + whole[2:]
    assert np.array_equal(
        parse(both, size=(26, 18), upright=True)["x"],
        parse(whole, size=(26, 18), upright=True)["x"],
    )


@pytest.mark.parametrize("seed", range(6))
def test_no_picture_depends_on_the_pictures_before_it(tmp_path: Path, seed: int) -> None:
    assert differing_pictures(tmp_path, 1000, threads=1 + seed % 3, seed=seed) == []


def test_threads_that_share_a_parser_give_each_picture_its_own_pixels() -> None:
    features = {"x": tfr.Image((36, 52), damaged="grey")}
    records = [tfr.encode_example({"x": picture}) for picture in odd_pictures().values()]
    expected = np.concatenate([tfr.parse_example([each], dict(features))["x"] for each in records])

    def parse_all(seed: int) -> bool:
        rows = np.random.default_rng(seed).integers(0, len(records), 1000)
        found = tfr.parse_example([records[row] for row in rows], features)["x"]
        return np.array_equal(found, expected[rows])

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(parse_all, range(8)))


@pytest.mark.parametrize(
    "options",
    [{"threads": 3, "batch_size": 1}, {"threads": 2, "batch_size": 37}, {"prefetch": 9}],
    ids=str,
)
def test_windows_do_not_depend_on_threads_or_batches(
    file: str, expected: Any, options: dict[str, Any]
) -> None:
    arguments = {"batch_size": 5} | options
    assert rows_of(tfr.Loader(file, features={"x": RANDOM}, seed=3, **arguments), 2) == expected


def test_ranks_and_a_resume_have_the_windows_of_one_run(file: str, expected: Any) -> None:
    first = tfr.Loader(file, 4, features={"x": RANDOM}, seed=3)
    steps = iter(first)
    found = {}
    for batch in (next(steps), next(steps)):
        crops = windows(batch.crops["x"])
        for number, crop, pixels in zip(batch.indices, crops, batch["x"], strict=True):
            found[0, int(number)] = (crop, pixels.tobytes())
    for rank in range(3):
        resumed = tfr.Loader(file, 2, features={"x": RANDOM}, seed=3, rank=rank, world=3)
        resumed.load_state_dict(first.state_dict())
        found |= rows_of(pickle.loads(pickle.dumps(resumed)))
    assert found == {key: value for key, value in expected.items() if key[0] == 0}
    assert len({value[0] for value in expected.values()}) > 60, (
        "epochs and records have windows of their own"
    )


def uniform(draw: int, number: int, least: int, most: int) -> int:
    return least + (siphash24((draw, TAG), [number]) * (most - least + 1) >> 64)


TAG = 0x696D616765647261


def window(seed: int, epoch: int, position: int, row: int, height: int, width: int) -> Any:
    """The window of RANDOM, as docs/images.md specifies it."""
    draw = siphash24((seed, TAG), [epoch, position, row])
    one = 1 << 32
    for attempt in range(10):
        area = height * width * uniform(draw, 4 * attempt, round(0.1 * one), round(0.8 * one))
        ratio = uniform(draw, 4 * attempt + 1, 3 * one // 4, round(4 / 3 * one))
        columns = (math.isqrt(4 * (area * ratio >> 32) >> 32) + 1) // 2
        rows = (math.isqrt(4 * ((area << 32) // ratio) >> 32) + 1) // 2
        if 1 <= columns <= width and 1 <= rows <= height:
            top = uniform(draw, 4 * attempt + 2, 0, height - rows)
            left = uniform(draw, 4 * attempt + 3, 0, width - columns)
            flipped = siphash24((draw, TAG), [40]) >> 63
            return top, left, rows, columns, height, width, flipped, 0
    raise AssertionError("no attempt fits")


def test_windows_are_those_of_the_page(file: str, expected: Any) -> None:
    plan = tfr.Plan(tfr.Shuffle(3), COUNT, num_records=COUNT)
    numbers = plan.indices(1, 0).tolist()
    for position, number in enumerate(numbers):
        assert expected[1, number][0] == window(3, 1, position, 0, 36, 52)


def test_rows_of_a_batch_by_tokens_have_draws_of_their_own(file: str) -> None:
    order, batching = tfr.Shuffle(3), tfr.ByTokens(4000, lengths=np.full(COUNT, 1000))
    loader = tfr.Loader(file, batching, features={"x": RANDOM}, order=order)
    for position, batch in enumerate(loader):
        expected = [window(3, 0, position, row, 36, 52) for row in range(len(batch.indices))]
        assert windows(batch.crops["x"]) == expected


def test_damage_names_the_record_or_is_grey(tmp_path: Path) -> None:
    image = (GOLDEN / "subsampled.jpg").read_bytes()
    path = tmp_path / "a.tfrecord"
    write_rows(path, ({"x": each} for each in (image, image[:300], b"", b"not an image")))
    for number, why in ((1, "it ends early"), (2, "is empty"), (3, "neither a JPEG nor a PNG")):
        loader = tfr.Loader(
            path, 1, features={"x": tfr.Image((8, 8))}, order=tfr.InOrder(indices=[number])
        )
        with pytest.raises(tfr.FeatureError, match=f"(?s)'x'.*{why}.*Record {number} of .*grey"):
            next(iter(loader))
    grey = {"x": tfr.Image((8, 8), damaged="grey", dtype="float32")}
    batch = next(iter(tfr.Loader(path, 4, features=grey, shuffle=False)))
    assert batch.crops["x"]["damaged"].tolist() == [0, 1, 1, 1]
    assert (batch["x"][1:] == 128).all()
    whole = batch[batch.crops["x"]["damaged"] == 0]
    assert whole.crops["x"]["height"].tolist() == [36]


def test_skipped_records_do_not_move_the_draws_of_others(tmp_path: Path, file: str) -> None:
    data = bytearray(Path(file).read_bytes())
    with tfr.Reader(file) as reader:
        place = reader.locate(2)
    data[place.offset + 20] ^= 1
    path = tmp_path / "damaged.tfrecord"
    path.write_bytes(data)
    spec = {"x": RANDOM}
    whole = rows_of(tfr.Loader(file, 6, features=spec, shuffle=False))
    reader = tfr.Reader(path, on_corruption="skip")
    rest = rows_of(tfr.Loader(reader, 6, features=spec, shuffle=False))
    assert rest == {key: value for key, value in whole.items() if key[1] != 2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": (0, 0)}, "Without a size, each picture keeps its own"),
        ({"size": None, "crop": "center"}, "needs a size"),
        ({"size": None, "layout": "CHW"}, "Transpose each picture"),
        ({"size": (0, 8)}, "from 1 to 16,384"),
        ({"channels": 4}, "channels must be 1 or 3"),
        ({"crop": "middle"}, '"center", "random" or None'),
        ({"area": (0, 1)}, "above 0 and at most 1"),
        ({"area": (0.1, math.nan)}, "above 0 and at most 1"),
        ({"ratio": (2, 1)}, "from 1/1000 to 1000"),
        ({"resize": "nearest"}, '"bilinear" or "area"'),
        ({"dtype": "int64"}, '"uint8" or "float32"'),
        ({"layout": "NHWC"}, '"HWC" or "CHW"'),
        ({"max_pixels": 0}, "max_pixels"),
    ],
    ids=str,
)
def test_options_without_a_meaning_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse("color.png", **options)


def test_an_image_without_a_size_keeps_its_own() -> None:
    records = [
        tfr.encode_example({"x": (GOLDEN / name).read_bytes()})
        for name in ("color.png", "turned_6.jpg", "grey.jpg")
    ]
    batch = tfr.parse_example(records, {"x": tfr.Image(upright=True)})
    pictures = batch["x"]
    assert [each.shape for each in pictures] == [(36, 52, 3), (52, 36, 3), (36, 52, 3)]
    for number, name in enumerate(("color.png", "turned_6.jpg", "grey.jpg")):
        size = pictures[number].shape[:2]
        assert np.array_equal(pictures[number], parse(name, size=size, upright=True)["x"][0])
    some = pickle.loads(pickle.dumps(batch))[[2, 1]]["x"]
    assert np.array_equal(some[1], pictures[1])
    lines = pictures[1:].to_ragged()
    assert np.array_equal(np.stack(list(lines[0])), pictures[1])
    grey = tfr.Image(dtype="float32", channels=1, damaged="grey")
    found = tfr.parse_example([records[2], tfr.encode_example({"x": b"?"})], {"x": grey})
    assert (found["x"].shapes.tolist(), found["x"].dtype) == ([[36, 52, 1], [0, 0, 1]], np.float32)
    assert found.crops["x"]["damaged"].tolist() == [0, 1]
    for record in (tfr.encode_example({}), tfr.encode_example({"x": [b"a", b"b"]})):
        with pytest.raises(tfr.FeatureError):
            tfr.parse_example([records[0], record], {"x": tfr.Image()})


def test_a_window_without_a_size_is_cut_out_of_the_image(tmp_path: Path) -> None:
    for batch in loader_of(write_images(tmp_path)):
        for row, (number, window) in enumerate(
            zip(batch.indices, windows(batch.crops["own"]), strict=True)
        ):
            top, left, height, width, _, _, flipped, _ = window
            whole = parse(NAMES[number % len(NAMES)])["x"][0]
            cut = whole[top : top + height, left : left + width]
            assert np.array_equal(batch["own"][row], cut[:, ::-1] if flipped else cut)


def test_what_has_no_order_has_no_random_windows() -> None:
    with pytest.raises(ValueError, match="takes its draws from the order of a Loader"):
        parse("color.png", crop="random")
    with pytest.raises(ValueError, match="Image"):
        tfr.parse_sequence_example([b""], {"x": tfr.Image((8, 8))})


def test_an_image_of_more_pixels_than_allowed_is_damaged() -> None:
    with pytest.raises(tfr.FeatureError, match="36 x 52 pixels, and max_pixels is 100"):
        parse("color.png", max_pixels=100)
