"""Batches that are parsed: records are decoded during reading, with the results of tf.data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import elements, outcomes, plain, some_example, write_examples
from record_files import flip_payload_byte, write_shard

tf = pytest.importorskip("tensorflow")

from against_tensorflow import assert_alike, both, gathered  # noqa: E402

RaggedFeature = tf.io.RaggedFeature
SIMPLE: dict[str, Any] = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "dense": tf.io.FixedLenFeature([3], tf.float32),
    "absent": tf.io.FixedLenFeature([2], tf.string, [b"one", b"two"]),
    "missing": tf.io.FixedLenFeature([], tf.float32, 0.5),
    "name": tf.io.FixedLenFeature([], tf.string),
    "weights": tf.io.FixedLenSequenceFeature([], tf.float32, True, -1.0),
    "words": tf.io.VarLenFeature(tf.string),
    "numbers": RaggedFeature(tf.int64),
    "marks": RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
}
COMPOSITE: dict[str, Any] = {
    "divided": RaggedFeature(tf.int64, "numbers", [RaggedFeature.RowLengths("lengths")]),
    "placed": tf.io.SparseFeature("positions", "marks", tf.int64, 10),
    "id": SIMPLE["id"],
}
#: Without "marks", which cannot be ragged and have positions.
FEATURES = {name: spec for name, spec in (SIMPLE | COMPOSITE).items() if name != "marks"}
ID = {"id": SIMPLE["id"]}
COUNTS = [40, 0, 27, 1]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_examples(tmp_path_factory.mktemp("examples"), COUNTS)


Chain = Callable[[Any], Any]
CHAINS: dict[str, Chain] = {
    "batch": lambda source: source.batch(8),
    "full batches": lambda source: source.batch(8, drop_remainder=True),
    "part": lambda source: source.skip(5).shard(2, 1).take(20).batch(8),
    "shuffled": lambda source: source.shuffle(1, seed=3, reshuffle_each_iteration=False).batch(8),
    "shuffled epochs": lambda source: source.shuffle(1, seed=3).repeat(2).batch(8),
    "repeated batches": lambda source: source.shuffle(1, seed=3).batch(8).repeat(2),
    "blocks": lambda source: (
        source.shuffle(seed=3, order=tfr.BlockShuffle(8, 2, streams=2))
        .repeat(2)
        .batch(8, drop_remainder=True)
    ),
    "mapped, not fused": lambda source: source.map(lambda record: record).batch(8),
    "prefetched": lambda source: source.prefetch(9).batch(8).prefetch(2),
    "rebatched": lambda source: source.batch(3).rebatch(8).repeat(2),
    "padded": lambda source: source.padded_batch(8, drop_remainder=True),
    "cached": lambda source: source.cache().batch(8),
    "with options": lambda source: (
        source.with_options(tf.data.Options()).shuffle(1, 3, False).batch(8)
    ),
    "cached batches, not fused": lambda source: source.batch(8).cache().repeat(2),
    "filtered, not fused": lambda source: (
        source.filter(lambda record: tf.strings.length(record) % 2 == 0)
        .shuffle(1, seed=3, reshuffle_each_iteration=False)
        .batch(8)
    ),
    "batches taken": lambda source: source.batch(8).take(3).skip(1).repeat(2),
    "batches shuffled, not fused": lambda source: source.batch(8).shuffle(
        3, seed=1, reshuffle_each_iteration=False
    ),
}


STREAMED = ["batch", "full batches", "part", "shuffled epochs", "mapped, not fused", "rebatched"]
#: Chains of batches of every kind. Of the others, a few columns say the same.
WITH_ALL_COLUMNS = ["batch", "full batches", "shuffled epochs", "mapped, not fused"]
SOME_FEATURES = {name: FEATURES[name] for name in ("id", "name", "words", "divided")}


@pytest.mark.parametrize(
    ("chain", "planned"),
    [*((chain, True) for chain in CHAINS), *((chain, False) for chain in STREAMED)],
)
def test_gives_what_tensorflow_gives(files: list[str], chain: str, planned: bool) -> None:
    if planned:
        tfr.Reader(files).close()
    features = FEATURES if chain in WITH_ALL_COLUMNS else SOME_FEATURES
    batches = CHAINS[chain](tfr.TFRecordDataset(files))
    theirs = tf.data.Dataset.map(batches, lambda records: tf.io.parse_example(records, features))
    ours = batches.parse_example(features)
    expected = elements(theirs)
    assert elements(ours) == expected
    length = len(expected)
    # Older TensorFlows do not know how many batches rebatch() makes.
    is_known = planned and "not fused" not in chain and chain != "rebatched"
    assert ours.cardinality() in (length, length if is_known else tf.data.UNKNOWN_CARDINALITY)
    for name, spec in theirs.element_spec.items():
        assert spec.is_compatible_with(ours.element_spec[name]), name
        assert type(spec) is type(ours.element_spec[name])


def parse(batch: Any) -> Any:
    return tf.io.parse_example(batch, SIMPLE)


def pairs(batch: Any) -> Any:
    parsed = parse(batch)
    label = parsed.pop("id")
    return parsed, label


def twice(batch: Any) -> Any:
    parsed = parse(batch)
    return {"one": parsed["words"], "two": (parsed["words"], parsed["missing"])}


def dense(records: Any) -> Any:
    row = parse(records)
    words = tf.sparse.to_dense(row["words"])[:, :2]
    return {"words": words, "dense": row["dense"] * 2.0, "marks": row["marks"]}, row["id"]


def ragged(records: Any) -> Any:
    row = parse(records)
    return row["marks"] * 3, row["marks"].row_lengths(), tf.reduce_sum(row["weights"], 1)


SCALE = tf.Variable(3, dtype=tf.int64)


@tf.function(autograph=False)
def nested(records: Any) -> Any:
    return parse(records)["id"] * SCALE


def checked(records: Any) -> Any:
    ids = parse(records)["id"]
    tf.debugging.assert_less(ids, tf.constant(24, tf.int64))
    return ids


def of_others(batch: Any) -> Any:
    return tf.io.parse_example(tf.reverse(batch, [0]), SIMPLE)


def noisy(batch: Any) -> Any:
    parsed = parse(batch)
    return parsed["id"], tf.random.uniform([], seed=3) > 2.0


def printing(batch: Any) -> Any:
    tf.print("batch", output_stream="file:///dev/null")
    return parse(batch)


def with_records(records: Any) -> Any:
    return parse(records)["id"] + 1, tf.strings.length(records)


def key_twice(batch: Any) -> Any:
    return tf.raw_ops.ParseExampleV2(
        serialized=batch,
        names=tf.constant([], tf.string),
        sparse_keys=tf.constant([], tf.string),
        dense_keys=["id", "id"],
        ragged_keys=tf.constant([], tf.string),
        dense_defaults=[tf.constant([7], tf.int64)] * 2,
        num_sparse=0,
        sparse_types=[],
        ragged_value_types=[],
        ragged_split_types=[],
        dense_shapes=[[1], [1]],
    ).dense_values[0]


def composite(batch: Any) -> Any:
    return tf.io.parse_example(batch, COMPOSITE)


applied = tf.data.experimental.parse_example_dataset
PLANNED, TAKEN_OUT, PLAIN = "planned", "its parse is taken out", "TensorFlow's"
#: Calls that parse batches, and what becomes of the parse.
CALLS: dict[str, tuple[Chain, str]] = {
    "map": (lambda batches: batches.map(parse, num_parallel_calls=tf.data.AUTOTUNE), PLANNED),
    "pairs": (lambda batches: batches.map(pairs), PLANNED),
    "twice": (lambda batches: batches.map(twice), PLANNED),
    "applied": (lambda batches: batches.apply(applied(SIMPLE)), PLANNED),
    "applied, composite": (lambda batches: batches.apply(applied(COMPOSITE)), PLANNED),
    "dense": (lambda batches: batches.map(dense, tf.data.AUTOTUNE).prefetch(2), TAKEN_OUT),
    "ragged": (lambda batches: batches.map(ragged), TAKEN_OUT),
    "nested": (lambda batches: batches.map(nested).map(lambda ids: ids + 1), TAKEN_OUT),
    "checked": (lambda batches: batches.map(checked).enumerate(), TAKEN_OUT),
    "unbatched": (lambda batches: batches.map(dense).unbatch().batch(3), TAKEN_OUT),
    "reversed": (lambda batches: batches.map(of_others), PLAIN),
    "noisy": (lambda batches: batches.map(noisy), TAKEN_OUT),
    "printing": (lambda batches: batches.map(printing), TAKEN_OUT),
    "composite": (lambda batches: batches.map(composite), TAKEN_OUT),
    "after another map": (lambda batches: batches.map(lambda batch: batch).map(parse), PLAIN),
    "with the records": (lambda batches: batches.map(with_records), PLAIN),
    "a key twice": (lambda batches: batches.map(key_twice), PLAIN),
}


@pytest.mark.parametrize(
    ("name", "full"),
    [
        *((name, False) for name in CALLS),
        *((name, True) for name in ("pairs", "ragged", "unbatched", "composite", "a key twice")),
    ],
)
def test_calls_give_what_tensorflow_gives(files: list[str], name: str, full: bool) -> None:
    tfr.Reader(files).close()
    call, becomes = CALLS[name]
    ours, theirs = both(files, lambda source: call(source.batch(8, drop_remainder=full)))
    expected = outcomes(theirs)
    for each in (ours, tfr.accelerate(theirs)):
        assert each.element_spec == theirs.element_spec
        assert outcomes(each) == expected
        assert all(step.fused for step in tfr.explain(each).steps) == (becomes == PLANNED)
        assert (TAKEN_OUT in str(tfr.explain(each))) == (becomes == TAKEN_OUT)


@pytest.mark.parametrize("is_made_inside", [True, False])
def test_a_traced_function_sees_the_same_batches(files: list[str], is_made_inside: bool) -> None:
    def columns(batch: Any) -> Any:
        row = parse(batch)
        return row["id"], row["dense"], row["absent"], row["name"]

    tfr.Reader(files).close()
    ours, theirs = both(files, lambda source: source.batch(8).map(columns))

    @tf.function(autograph=False)
    def inside() -> Any:
        made = tfr.TFRecordDataset(files).batch(8).map(columns)
        return gathered(made if is_made_inside else ours)

    assert plain(inside()) == plain(gathered(theirs))


def test_a_variable_is_read_when_it_is_needed(files: list[str]) -> None:
    ours = tfr.accelerate(tf.data.TFRecordDataset(files).batch(31).map(nested))
    before = next(iter(ours)).numpy().tolist()
    SCALE.assign(5)
    assert next(iter(ours)).numpy().tolist() == [number // 3 * 5 for number in before]
    SCALE.assign(3)


INNER: dict[str, Any] = {
    "place": tf.io.FixedLenFeature([], tf.int64, -1),
    "score": tf.io.FixedLenFeature([2], tf.float32),
    "words": tf.io.VarLenFeature(tf.string),
    "marks": RaggedFeature(tf.int64),
}


def lists_of_examples(records: Any) -> Any:
    """Like a reader of ranked documents: a feature has Examples of its own."""
    row = tf.io.parse_example(records, {"documents": RaggedFeature(tf.string)})
    documents = row["documents"]
    inner = tf.io.parse_example(documents.flat_values, INNER)
    return documents.with_flat_values(inner["score"]).to_tensor(), inner


@pytest.mark.parametrize("bad", [None, b"no example", tfr.encode_example({"place": 1})])
def test_examples_in_examples_are_parsed_the_same(tmp_path: Path, bad: bytes | None) -> None:
    records = []
    for number in range(40):
        inner: list[Any] = [
            {"score": [place, 0.5], "words": [b"w"] * place, "marks": [place] * (number % 3)}
            for place in range(number % 4 if number >= 8 else 0)
        ]
        documents = [tfr.encode_example(each) for each in inner]
        if bad is not None and number == 21:
            documents[:1] = [bad]
        records.append(tfr.encode_example({"documents": documents}))
    path = write_shard(tmp_path / "shard", records)
    theirs = tf.data.TFRecordDataset(path).batch(8).map(lists_of_examples)
    ours = tfr.accelerate(theirs)
    assert_alike(ours, theirs)
    assert TAKEN_OUT in str(tfr.explain(ours))
    if bad is not None:  # our error names the record, which shows that tfrfast has parsed
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Record \d"):
            list(ours)


@pytest.mark.parametrize("planned", [True, False], ids=["planned", "streaming"])
def test_a_missing_feature_is_named(files: list[str], planned: bool) -> None:
    if planned:
        tfr.Reader(files).close()
    features = {"lengths": tf.io.FixedLenFeature([1], tf.int64)}
    batches, theirs = both(files, lambda source: source.batch(8))
    ours = batches.parse_example(features)
    theirs = theirs.map(lambda batch: tf.io.parse_example(batch, features))
    for dataset in (ours, theirs):
        with pytest.raises(tf.errors.InvalidArgumentError, match="lengths"):
            elements(dataset)


def test_what_is_no_example_costs_the_same_batches(tmp_path: Path) -> None:
    records = [some_example(number) for number in range(31)]
    records[10] = b"no Example"
    bad = write_shard(tmp_path / "bad", records)
    tfr.Reader(bad).close()
    ours, theirs = both(bad, lambda source: source.batch(4).map(pairs))
    assert tfr.explain(ours).steps[-1].fused
    assert elements(ours.ignore_errors()) == elements(theirs.ignore_errors())
    assert outcomes(ours)[:3] == outcomes(theirs)[:3]
    assert outcomes(ours)[2] is tf.errors.InvalidArgumentError


def test_repeats_of_decoded_batches_reshuffle_as_those_of_strings(files: list[str]) -> None:
    batches = tfr.TFRecordDataset(files).shuffle(1, seed=3).batch(8)
    after = batches.parse_example(ID).repeat(2)
    before = batches.repeat(2).parse_example(ID)
    assert elements(after) == elements(before)
    assert after.cardinality() == before.cardinality()


def test_single_records_are_parsed_as_well(files: list[str]) -> None:
    features = ID | {"words": SIMPLE["words"]}
    dataset = tfr.TFRecordDataset(files).parse_example(features).shuffle(1).batch(10)
    ids = [number for batch in dataset for number in batch["id"].numpy().tolist()]
    assert ids != sorted(ids)
    assert sorted(ids) == list(range(sum(COUNTS)))


def test_our_specs_want_batches(files: list[str]) -> None:
    features = {"id": tfr.FixedLen((), "int32"), "numbers": tfr.VarLen("int64")}
    source = tfr.TFRecordDataset(files)
    with pytest.raises(TypeError, match=r"batch\(\) first"):
        source.parse_example(features)
    batch = next(iter(source.batch(8).parse_example(features)))
    assert batch["id"].dtype == tf.int32
    assert isinstance(batch["numbers"], tf.RaggedTensor)


def test_only_records_can_be_parsed(files: list[str]) -> None:
    numbers = tfr.TFRecordDataset(files).map(tf.strings.length)
    with pytest.raises(TypeError, match="serialized records"):
        numbers.parse_example(FEATURES)


@pytest.mark.parametrize("planned", [True, False], ids=["planned", "streaming"])
def test_damage_leaves_the_columns_of_the_rest(tmp_path: Path, planned: bool) -> None:
    files = write_examples(tmp_path, [40, 10])
    flip_payload_byte(files[0], [some_example(number) for number in range(40)], 21)
    if planned:
        tfr.Reader(files).close()
    dataset = tfr.TFRecordDataset(files).batch(50).parse_example(FEATURES)
    rest = [some_example(number) for number in range(50) if number != 21]
    expected = plain(tf.io.parse_example(rest, FEATURES))
    assert elements(dataset.ignore_errors()) == [expected]
    skipping = tfr.TFRecordDataset(files, on_corruption="skip").batch(50)
    assert elements(skipping.parse_example(FEATURES)) == [expected]


def test_a_changed_file_is_refused_until_a_new_iteration(tmp_path: Path) -> None:
    files = write_examples(tmp_path, [40])
    tfr.Reader(files).close()
    dataset = tfr.TFRecordDataset(files).shuffle(1).batch(8).parse_example(ID)
    assert len(elements(dataset)) == 5
    iterator = iter(dataset.repeat(9))
    next(iterator)
    write_examples(tmp_path, [30])
    with pytest.raises((tf.errors.FailedPreconditionError, tf.errors.DataLossError)):
        list(iterator)
    assert len(elements(dataset)) == 4


class TestBatchedFeatures:
    """make_batched_features_dataset() of TensorFlow, accelerated."""

    @pytest.mark.parametrize(
        ("label", "epochs", "drop"), [(None, 1, False), ("id", 2, False), ("id", 2, True)]
    )
    def test_gives_what_tensorflow_gives(
        self, files: list[str], label: str | None, epochs: int, drop: bool
    ) -> None:
        def made(**options: Any) -> Any:
            options |= {"label_key": label, "num_epochs": epochs, "drop_final_batch": drop}
            make = tf.data.experimental.make_batched_features_dataset
            return make(files, batch_size=8, features=FEATURES, **options)

        theirs = made(shuffle=False)
        expected = elements(theirs)
        assert elements(tfr.accelerate(theirs)) == expected
        assert elements(made(shuffle=False, reader=tfr.TFRecordDataset)) == expected
        shuffled = tfr.accelerate(made(shuffle_seed=3))
        fused = [step.call.partition("(")[0] for step in tfr.explain(shuffled).steps if step.fused]
        assert [each for each in fused if each != "repeat"] == [
            *("shuffle", "batch", "parse_example_dataset")
        ]
        ids, plain_ids = (
            [number for batch in batches for number in (batch[1] if label else batch["id"])]
            for batches in (elements(shuffled), expected)
        )
        assert drop or sorted(ids) == sorted(plain_ids)
        assert ids != sorted(ids)

    def test_takes_any_function_that_opens_files(self, tmp_path: Path) -> None:
        path = str(tmp_path / "shard")
        with tf.io.TFRecordWriter(path, "GZIP") as writer:
            for number in range(20):
                writer.write(some_example(number))

        def gzip_reader_fn(name: Any) -> Any:
            return tf.data.TFRecordDataset(name, compression_type="GZIP")

        theirs = tf.data.experimental.make_batched_features_dataset(
            path, 8, SIMPLE, reader=gzip_reader_fn, num_epochs=1, shuffle=False
        )
        ours = tfr.accelerate(theirs)
        assert tfr.explain(ours).steps[1].fused
        assert elements(ours) == elements(theirs)
