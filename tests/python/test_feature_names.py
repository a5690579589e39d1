"""Features requested by name; all features; and names that no record has."""

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from record_files import write_rows
from tfrfast.cli import main

SPECS = {
    "image": tfr.FixedLen((2, 2), "uint8", raw=True),
    "image/class/label": tfr.FixedLen((), "int64"),
    "weights": tfr.FixedLen((3,), "float32"),
    "tags": tfr.VarLen("bytes"),
}
INFERRED = {
    "image": tfr.FixedLen((), "bytes"),
    "image/class/label": tfr.FixedLen((), "int64"),
    "weights": tfr.FixedLen((3,), "float32"),
    "tags": tfr.VarLen("bytes"),
    "author": tfr.FixedLen((), "bytes", default=b""),
    "rating": tfr.FixedLen((), "float32", default=0.0),
    "year": tfr.FixedLen((), "int64", default=0),
}


def example(number: int) -> dict[str, Any]:
    rare = {"author": b"a", "rating": 0.5, "year": 1984} if number % 3 == 1 else {}
    return {
        "image": bytes([number % 256] * 4),
        "image/class/label": number,
        "weights": [1.0, 2.0, 3.0],
        "tags": [b"t"] * (number % 3),
        **rare,
    }


def shard(path: Path, examples: list[dict[str, Any]]) -> str:
    write_rows(path, examples)
    return str(path)


@pytest.fixture
def data(tmp_path: Path) -> str:
    return shard(tmp_path / "data", [example(number) for number in range(100)])


@pytest.fixture(autouse=True)
def no_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_all_features_are_inferred(data: str) -> None:
    loader = tfr.Loader(data, 10, features="infer", shuffle=False)
    assert loader.features == INFERRED
    batch = next(iter(loader))
    assert batch["image/class/label"].tolist() == list(range(10))
    assert batch["year"].tolist() == [0, 1984, 0, 0, 1984, 0, 0, 1984, 0, 0]
    assert batch["author"].tolist() == [b"", b"a", b"", b"", b"a", b"", b"", b"a", b"", b""]
    assert pickle.loads(pickle.dumps(loader)).features == INFERRED
    records = tfr.Reader(data)
    assert tfr.infer_features(records) == INFERRED
    for serialized in (list(records), records[:]):
        parsed = tfr.parse_example(serialized, "infer")
        assert parsed.keys() == INFERRED.keys()
        assert parsed["rating"].tolist()[:3] == [0, 0.5, 0]


def test_features_are_taken_by_name(data: str) -> None:
    names = ["weights", "image/class/label"]
    loader = tfr.Loader(data, 10, features=names)
    assert list(loader.features or ()) == names
    assert loader.features == {name: INFERRED[name] for name in names}
    assert list(next(iter(loader))) == names
    parsed = tfr.parse_example(tfr.Reader(data)[:], tuple(names))
    assert list(parsed) == names
    assert parsed["weights"].shape == (100, 3)


@pytest.mark.parametrize(
    ("features", "error", "message"),
    [
        ("image", TypeError, r"A single name goes into a list: features=\['image'\]"),
        ("", TypeError, "neither a dict of specs"),
        ([3], TypeError, "Feature names are str, not int."),
        (
            ["image", "lable"],
            tfr.FeatureError,
            "'lable' is required.*Did you mean 'image/class/label'",
        ),
        (
            ["Weights", "zzz"],
            tfr.FeatureError,
            "Did you mean 'weights'.*'zzz' is required.*They have 'author', ",
        ),
    ],
)
def test_what_cannot_be_taken_by_name(data: str, features: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        tfr.Loader(data, 10, features=features)
    with pytest.raises(error, match=message):
        tfr.parse_example(tfr.Reader(data)[:], features)


def test_shards_to_infer_from(data: str) -> None:
    expected = tfr.infer_features(tfr.Reader(data))
    assert expected
    for shards in (data, Path(data), [data], [Path(data), data], data[:-1] + "*"):
        assert tfr.infer_features(shards) == expected


def test_nothing_to_infer_from(tmp_path: Path) -> None:
    empty = shard(tmp_path / "empty", [])
    for features in ("infer", ["a"]):
        with pytest.raises(ValueError, match="there are no records"):
            tfr.Loader(empty, 1, features=features)
        with pytest.raises(ValueError, match="there are no records"):
            tfr.parse_example([], features)
    assert len(tfr.Loader(empty, 1, features={"a": tfr.FixedLen((), "int64")})) == 0


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("imagee", "image"),
        ("Image", "image"),
        ("wieghts", "weights"),
        ("label", "image/class/label"),
        ("class.label", "image/class/label"),
        ("tag", "tags"),
    ],
)
def test_a_misspelled_feature_is_named_when_the_loader_is_made(
    data: str, wrong: str, right: str
) -> None:
    features = {"year": tfr.FixedLen((), "int64", default=1), wrong: tfr.FixedLen((), "int64")}
    message = f"Feature '{wrong}' is required, but none of the 32 examined records .* Did you mean '{right}'"
    with pytest.raises(tfr.FeatureError, match=message):
        tfr.Loader(data, 10, features=features)
    for serialized in (list(tfr.Reader(data)), tfr.Reader(data)[::-1]):
        with pytest.raises(
            tfr.FeatureError, match=f"could not be found.* Did you mean '{right}'"
        ) as caught:
            tfr.parse_example(serialized, features)
        assert caught.value.record == (0 if isinstance(serialized, list) else 99)


def test_a_name_like_no_other_is_an_error_with_those_there_are(data: str) -> None:
    features = {"pixels": tfr.FixedLen((), "bytes")}
    with pytest.raises(
        tfr.FeatureError, match="They have 'author', 'image', 'image/class/label'"
    ) as caught:
        tfr.Loader(data, 10, features=features)
    assert "Did you mean" not in str(caught.value)
    with pytest.raises(
        tfr.FeatureError, match="It has 'image', 'image/class/label', 'tags', 'weights'"
    ):
        tfr.parse_example(tfr.Reader(data)[:], features)


@pytest.mark.parametrize(
    "spec",
    [
        tfr.VarLen("bytes"),
        tfr.VarLen("bytes", sparse=True),
        tfr.FixedLen((), "bytes", default=b""),
        tfr.FixedLenSequence((), "bytes"),
    ],
)
def test_an_optional_feature_that_may_be_misspelled_is_a_warning(data: str, spec: Any) -> None:
    features = {"tagz": spec, "image/class/label": tfr.FixedLen((), "int64")}
    with pytest.warns(UserWarning, match="has the feature 'tagz'.*Did you mean 'tags'") as caught:
        tfr.Loader(data, 10, features=features)
    assert [each.filename for each in caught] == [__file__]
    with pytest.warns(UserWarning, match="None of the 32 examined records") as caught:
        tfr.parse_example(tfr.Reader(data)[:], features)
    assert [each.filename for each in caught] == [__file__]
    tfr.parse_example(tfr.Reader(data)[:], features)  # the warning comes once


def test_an_optional_feature_that_is_rare_is_fine(tmp_path: Path) -> None:
    examples = [example(number) for number in range(2000)]
    examples[1234]["rare"] = 1
    examples[1500]["feature_17"] = [1.0]
    for each in examples:
        each["feature_18"] = [2.0]
    features = {
        "rare": tfr.VarLen("int64"),
        "nowhere": tfr.FixedLen((), "int64", default=-1),
        "feature_17": tfr.VarLen("float32"),
        # Similar, but requested, so it is not a misspelling of the other name.
        "feature_18": tfr.VarLen("float32"),
    }
    loader = tfr.Loader(shard(tmp_path / "data", examples), 500, features=features)
    assert sum(len(batch["rare"].values) for batch in loader) == 1


def test_a_required_feature_that_some_records_lack_fails_where_they_come(tmp_path: Path) -> None:
    examples = [example(number) for number in range(50)]
    del examples[0]["weights"], examples[30]["weights"]
    path = shard(tmp_path / "data", examples)
    loader = tfr.Loader(
        path, 10, features={"weights": tfr.FixedLen((3,), "float32")}, shuffle=False
    )
    with pytest.raises(tfr.FeatureError, match="Record 0"):
        next(iter(loader))


def test_only_records_of_the_plan_are_looked_at(tmp_path: Path) -> None:
    examples = [{"cat": 1, "kind": [0]} if number < 90 else {"dog": 2} for number in range(100)]
    reader = tfr.Reader(shard(tmp_path / "data", examples))
    dogs = np.arange(90, 100)
    for rank in range(2):
        loader = tfr.Loader(
            reader,
            2,
            order=tfr.Shuffle(indices=dogs),
            features={"dog": tfr.FixedLen((), "int64")},
            rank=rank,
            world=2,
        )
        assert [batch["dog"].tolist() for batch in loader] == [[2, 2], [2, 2], [2]]
        assert tfr.Loader(
            reader, 2, order=tfr.Shuffle(indices=dogs), features="infer", rank=rank, world=2
        ).features == {"dog": tfr.FixedLen((), "int64")}
    with pytest.raises(tfr.FeatureError, match="They have 'dog'"):
        tfr.Loader(reader, 2, order=tfr.Shuffle(indices=dogs), features=["cat"])
    with pytest.raises(tfr.FeatureError, match="'dog' is required"):
        tfr.Loader(
            reader,
            2,
            order=tfr.Shuffle(indices=np.arange(90)),
            features={"dog": tfr.FixedLen((), "int64")},
        )


def test_every_rank_infers_the_same(tmp_path: Path) -> None:
    examples = [{"a": [1] * (1 + (number == 1999))} for number in range(3000)]
    examples += [{"a": 1, "b": 2.0}]
    reader = tfr.Reader(shard(tmp_path / "data", examples))
    inferred = [
        tfr.Loader(reader, 8, features="infer", rank=rank, world=4, seed=rank).features
        for rank in range(4)
    ]
    assert inferred[1:] == inferred[:-1]
    assert set(inferred[0] or ()) == {"a", "b"}  # the last record was examined


def test_damage_is_an_error_where_it_comes_and_not_before(tmp_path: Path) -> None:
    examples = [example(number) for number in range(40)]
    path = Path(shard(tmp_path / "data", examples))
    bytes_ = bytearray(path.read_bytes())
    where = tfr.Reader(path).locate(0)
    bytes_[where.offset + 20] ^= 1
    path.write_bytes(bytes_)
    for features in (SPECS, ["weights"], "infer", {"wieghts": tfr.VarLen("float32"), **SPECS}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loader = tfr.Loader(path, 10, features=features, shuffle=False)
        with pytest.raises(tfr.CorruptRecordError, match="record 0"):
            next(iter(loader))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader = tfr.Reader(path, on_corruption="skip")
            loader = tfr.Loader(reader, 10, features=features, shuffle=False)
        assert sum(len(batch.indices) for batch in loader) == 39


def test_what_is_no_example_is_said_where_it_is_read(tmp_path: Path) -> None:
    with tfr.Writer(tmp_path / "data") as writer:
        writer.write_batch([b"no example"] * 5)
    loader = tfr.Loader(tmp_path / "data", 2, features=SPECS, shuffle=False)
    with pytest.raises(tfr.FeatureError, match="Could not parse the record.* Record 0"):
        next(iter(loader))
    with pytest.raises(tfr.FeatureError, match="Record 0 of .* holds bytes of another format"):
        tfr.Loader(tmp_path / "data", 2, features="infer")


def test_what_a_sample_cannot_know_is_an_error_that_names_the_way_out(tmp_path: Path) -> None:
    examples = [{"a": 1} | ({} if number == 2500 else {"b": 2}) for number in range(5000)]
    path = shard(tmp_path / "data", examples)
    loader = tfr.Loader(path, 100, features="infer", shuffle=False)
    with pytest.raises(
        tfr.FeatureError, match=r"Record 2500 .*infer_features\(\.\.\., sample=None"
    ):
        list(loader)
    for source in (path, tfr.Reader(path), list(tfr.Reader(path))):
        features = tfr.infer_features(source, sample=None)
        assert features["b"] == tfr.FixedLen((), "int64", default=0)
    batches = tfr.Loader(path, 100, features=features)
    assert sum(len(batch["b"]) for batch in batches) == 5000


def test_an_error_while_inferring_names_the_record(tmp_path: Path) -> None:
    examples: list[dict[str, Any]] = [{"a": 1}] * 20 + [{"a": 1.0}]
    reader = tfr.Reader(shard(tmp_path / "data", examples))
    with pytest.raises(tfr.FeatureError, match="Data types don't match.* Record 20[. ]") as caught:
        tfr.Loader(reader, 1, order=tfr.Shuffle(indices=np.arange(10, 21)), features="infer")
    assert caught.value.record == 20


def test_a_few_records_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = tfr.Reader(shard(tmp_path / "data", [example(number) for number in range(3000)]))
    read: list[int] = []

    class Counting(tfr.Reader):
        def read(self, indices: Any) -> tfr.RecordBatch:
            read.extend(indices)
            return super().read(indices)

    reader = Counting(tmp_path / "data")
    tfr.Loader(reader, 10, features={"image": SPECS["image"], "tags": SPECS["tags"]})
    assert len(read) == 1
    read.clear()
    tfr.Loader(reader, 10, features={"nowhere": tfr.VarLen("int64")})
    assert len(set(read)) <= 33
    read.clear()
    tfr.Loader(reader, 10, features="infer")
    assert 900 <= len(set(read)) <= 1000


@pytest.mark.parametrize("dtype", [str, "str", np.str_, object, "U5"])
def test_strings_are_bytes(dtype: Any) -> None:
    for spec in (tfr.FixedLen((), dtype), tfr.VarLen(dtype), tfr.FixedLenSequence((), dtype)):
        with pytest.raises(ValueError, match="Feature 'a': for strings the dtype is \"bytes\""):
            tfr.parse_example([], {"a": spec})


def test_a_dtype_that_is_none() -> None:
    with pytest.raises(TypeError, match="Feature 'a': 'text' is not a dtype"):
        tfr.parse_example([], {"a": tfr.VarLen("text")})


def test_optional_scalars_are_inferred_as_such() -> None:
    def records(*rows: dict[str, Any]) -> list[bytes]:
        return [tfr.encode_example(row) for row in rows]

    optional = tfr.FixedLen((), "int64", default=0)
    assert tfr.infer_features(records({"a": 1}, {})) == {"a": optional}
    # the list is missing
    assert tfr.infer_features(records({"a": 1}, {"a": []})) == {"a": optional}
    empty_list = np.empty(0, np.int64)
    assert tfr.infer_features(records({"a": 1}, {"a": empty_list})) == {"a": tfr.VarLen("int64")}
    assert tfr.infer_features(records({"a": [1, 2]}, {})) == {"a": tfr.VarLen("int64")}
    assert tfr.infer_features(records({"a": [1, 2]}, {"a": 1})) == {"a": tfr.VarLen("int64")}


def test_schema_shows_defaults(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", data]) == 0
    out = capsys.readouterr().out
    for line in (
        "'author': tfr.FixedLen((), \"bytes\", default=b'')",
        "'rating': tfr.FixedLen((), \"float32\", default=0.0)",
        "'year': tfr.FixedLen((), \"int64\", default=0)",
    ):
        assert line in out
    assert main(["schema", "--json", data]) == 0
    facts = json.loads(capsys.readouterr().out)["features"]
    assert facts["year"] == {"kind": "fixed", "dtype": "int64", "shape": [], "default": 0}
    assert facts["author"]["default"] == ""
    assert "default" not in facts["weights"]
