"""The text of tfr.explain, of reprs, and of warnings."""

from __future__ import annotations

import inspect
import re
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

import tfrfast as tfr
from example_files import write_examples
from patience import at_least_once

tf = pytest.importorskip("tensorflow")
reasons = pytest.importorskip("tfrfast.tensorflow.reasons")
explaining = pytest.importorskip("tfrfast.tensorflow.explaining")
internals = pytest.importorskip("tfrfast.tensorflow.internals")

FEATURES = {"id": tf.io.FixedLenFeature([], tf.int64)}
COUNTS = [20, 0, 11]


@pytest.fixture
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    files = write_examples(tmp_path_factory.mktemp("examples"), COUNTS)
    tfr.Reader(files).close()
    return files


@pytest.fixture
def unindexed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_examples(tmp_path_factory.mktemp("unindexed"), COUNTS)


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reasons, "_told", set())


def parse_one(record: Any) -> Any:
    return tf.io.parse_single_example(record, FEATURES)


def parse_and_print(record: Any) -> Any:
    parsed = parse_one(record)
    tf.print(parsed["id"], output_stream="file:///dev/null")
    return parsed


def some_image(_: Any) -> Any:
    return tf.io.decode_png(tf.io.encode_png(tf.zeros([2, 2, 1], tf.uint8)))


def outcome(dataset: Any) -> list[tuple[str, bool]]:
    return [(step.call, step.fused) for step in tfr.explain(dataset).steps]


class TestExplain:
    def test_is_shown_once(self, files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        explanation = tfr.explain(tfr.TFRecordDataset(files).shuffle(5))
        assert (
            str(explanation)
            == repr(explanation)
            == str(tfr.TFRecordDataset(files).shuffle(5).explain())
        )
        assert "<td>shuffle(5)</td><td>fused</td>" in explanation._repr_html_()
        assert capsys.readouterr().out == ""

    def test_names_the_files_and_whether_they_are_planned(
        self, files: list[str], unindexed: list[str]
    ) -> None:
        indexed = str(tfr.explain(tfr.TFRecordDataset(files)))
        assert indexed == "TFRecordDataset of 3 files, 31 records: planned"
        uncounted = tfr.TFRecordDataset(unindexed)
        assert str(tfr.explain(uncounted)) == "TFRecordDataset of 3 files: planned"
        mixed = tfr.TFRecordDataset(files, num_parallel_reads=2)
        assert str(tfr.explain(mixed)) == "TFRecordDataset of 3 files, 31 records: planned"
        mixed = tfr.TFRecordDataset(files, num_parallel_reads=tf.Variable(2, dtype=tf.int64))
        assert str(tfr.explain(mixed)) == "TFRecordDataset of 3 files: streaming"
        shuffled = str(tfr.explain(uncounted.shuffle(1)))
        assert shuffled.startswith("TFRecordDataset of 3 files, 31 records: planned\n")

    def test_says_of_each_call_whether_it_is_fused(self, files: list[str]) -> None:
        dataset = tfr.TFRecordDataset(files).take(30).shuffle(9, seed=1).repeat(2).batch(8)
        dataset = dataset.parse_example(FEATURES).map(lambda batch: batch["id"]).prefetch(2)
        assert outcome(dataset) == [
            ("take(30)", True),
            ("shuffle(9, seed=1)", True),
            ("repeat(2)", True),
            ("batch(8)", True),
            ("parse_example({...})", True),
            ("map(<lambda>)", False),
            ("prefetch(2)", False),
        ]

    def test_a_part_of_batches_is_a_part_of_the_plan(self, files: list[str]) -> None:
        source = tfr.TFRecordDataset(files).shuffle(9, seed=1).batch(4)
        assert outcome(source.skip(2).take(3).repeat(2).parse_example(FEATURES)) == [
            ("shuffle(9, seed=1)", True),
            ("batch(4)", True),
            ("skip(2)", True),
            ("take(3)", True),
            ("repeat(2)", True),
            ("parse_example({...})", True),
        ]

    def test_walks_through_what_tensorflow_made(self, files: list[str]) -> None:
        ours = tfr.TFRecordDataset(files).shuffle(3)
        zipped = tf.data.Dataset.zip((ours, tf.data.Dataset.range(31))).prefetch(1)
        text = str(tfr.explain(zipped))
        assert "31 records: planned" in text
        calls = [step.call for step in tfr.explain(zipped).steps]
        assert calls == ["shuffle(3)", "range", "zip", "prefetch"]

    def test_shows_both_sides_of_a_concatenation(self, files: list[str]) -> None:
        first, second = tfr.TFRecordDataset(files[:1]), tfr.TFRecordDataset(files[2:]).shuffle(2)
        text = str(tfr.explain(first.concatenate(second)))
        assert "1 file, 20 records" in text
        assert "1 file, 11 records" in text

    def test_finds_readers_in_functions(self, files: list[str]) -> None:
        names = tf.data.Dataset.from_tensor_slices(files)
        step = tfr.explain(names.interleave(tfr.TFRecordDataset)).steps[-1]
        assert step.call == "interleave"
        assert "each file on its own" in step.why
        assert "TFRecordDataset(files)" in step.instead

    def test_knows_a_loaders_dataset(self, files: list[str]) -> None:
        text = str(tfr.explain(tfr.Loader(files, 4).to_tf_dataset().take(1)))
        assert "to_tf_dataset(): planned" in text

    def test_an_enumeration_is_one_call_in_each_version_of_tensorflow(
        self, files: list[str]
    ) -> None:
        first, second = (
            each.TFRecordDataset(files)
            .map(parse_one)
            .apply(tf.data.experimental.enumerate_dataset())
            .batch(8)
            for each in (tf.compat.v1.data, tf.data)
        )
        text = str(tfr.explain(tfr.accelerate(first)))
        assert text == str(tfr.explain(tfr.accelerate(second)))
        assert "TensorFlow does the work from enumerate() on" in text

    def test_says_where_nothing_is_ours(self) -> None:
        text = str(tfr.explain(tf.data.Dataset.range(3).batch(2)))
        assert "No tfr.TFRecordDataset" in text
        with pytest.raises(TypeError, match="tf.data.Dataset"):
            tfr.explain([1, 2])

    def test_works_in_graphs(self, files: list[str]) -> None:
        with tf.Graph().as_default():
            assert outcome(tfr.TFRecordDataset(files).shuffle(3).batch(2)) == [
                ("shuffle(3)", True),
                ("batch(2)", True),
            ]

    def test_is_no_fault_where_a_graph_is_made(self, files: list[str]) -> None:
        def made() -> Any:
            names = tf.data.Dataset.from_tensor_slices(files)
            return names.interleave(tf.data.TFRecordDataset, 2, num_parallel_calls=2).batch(8)

        texts: list[str] = []
        outside = made()

        @tf.function
        def explained() -> None:
            texts.extend(str(tfr.explain(each)) for each in (outside, made()))

        explained()
        with tf.Graph().as_default():
            texts.extend(str(tfr.explain(each)) for each in (outside, made()))
        assert [text for text in texts if "fault" in text] == []


def test_pictures_that_are_decoded_one_by_one_would_be_faster_as_features(tmp_path: Path) -> None:
    png = tf.io.encode_png(tf.zeros([2, 2, 1], tf.uint8)).numpy()
    with tfr.Writer(tmp_path / "a") as writer:
        for _ in range(8):
            writer.write_example({"image": png})
    specs = {"image": tf.io.FixedLenFeature([], tf.string)}

    def decoded(record: Any) -> Any:
        image = tf.io.decode_png(tf.io.parse_single_example(record, specs)["image"], 1)
        return tf.ensure_shape(image, [2, 2, 1])

    step = tfr.explain(tfr.TFRecordDataset(str(tmp_path / "a")).map(decoded).batch(8)).steps[0]
    assert step.fused
    assert step.instead.startswith("tfr.Loader with tfr.Image")
    batch = next(iter(tfr.Loader(str(tmp_path / "a"), 8, features={"image": tfr.Image((2, 2), 1)})))
    assert batch["image"].shape == (8, 2, 2, 1)


def test_a_heading_says_planned_or_streaming(files: list[str]) -> None:
    def heading(dataset: Any) -> str:
        return str(tfr.explain(dataset)).partition("\n")[0]

    unknown = tfr.TFRecordDataset(tf.data.Dataset.list_files(files).repeat())
    assert heading(unknown).endswith(": streaming")
    mapped = tfr.TFRecordDataset(files).shuffle(2).batch(4).map(tf.size)
    assert heading(mapped).endswith(": planned, TensorFlow does the work from map(size_v2) on")
    assert repr(mapped) == f"<PlannedDataset, element_spec={mapped.element_spec}>"


METHODS_WITH_OTHER_RESULTS = {
    "as_numpy_iterator",
    "cardinality",
    "explain",
    "fingerprint",
    "get_single_element",
    "options",
    "parse_example",
    "reduce",
    "save",
}


def test_each_method_that_makes_a_dataset_makes_ours() -> None:
    """The methods of this TensorFlow, except those that need no dataset."""
    ours = tfr.TFRecordDataset
    theirs = [
        name
        for name, method in inspect.getmembers(tf.data.Dataset, inspect.isfunction)
        if not name.startswith("_")
        and not isinstance(inspect.getattr_static(tf.data.Dataset, name), staticmethod)
    ]
    assert "batch" in theirs
    left = [name for name in theirs if getattr(ours, name) is getattr(tf.data.Dataset, name)]
    assert set(left) <= METHODS_WITH_OTHER_RESULTS


def test_strings_can_be_parsed_after_any_method(files: list[str]) -> None:
    source = tfr.TFRecordDataset(files)
    expected = [batch["id"].numpy().tolist() for batch in source.batch(4).parse_example(FEATURES)]
    for batches in (
        source.batch(4).prefetch(1),
        source.batch(4).cache(),
        source.batch(4).ignore_errors(),
        source.batch(4).take_while(lambda _: True),
        source.window(4).flat_map(lambda window: window.batch(4)),
        source.batch(4).apply(lambda dataset: dataset),
        source.batch(2).enumerate().map(lambda _, batch: batch).rebatch(4),
        source.batch(1).concatenate(source.take(0).batch(1)).rebatch(4),
    ):
        parsed = batches.parse_example(FEATURES)
        assert [batch["id"].numpy().tolist() for batch in parsed] == expected


class TestWarnings:
    def caught(self, action: Any) -> list[warnings.WarningMessage]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            action()
        return [each for each in caught if each.category is tfr.SlowPathWarning]

    def caught_by(self, *datasets: Any) -> list[warnings.WarningMessage]:
        return self.caught(lambda: list(map(iter, datasets)))

    def test_a_shuffle_through_a_buffer_is_said_once(self, files: list[str]) -> None:
        source = tfr.TFRecordDataset(files)
        caught = self.caught_by(*(source.batch(4).shuffle(3) for _ in range(2)))
        assert len(caught) == 1
        text = str(caught[0].message)
        assert "shuffle(3)" in text
        assert "before batch()" in text
        assert "tfr.SlowPathWarning" in text
        assert caught[0].filename == __file__

    def test_the_call_that_ended_the_plan_is_named(self, files: list[str]) -> None:
        source = tfr.TFRecordDataset(files).enumerate()
        (caught,) = self.caught_by(source.map(lambda i, _: i).shuffle(3))
        assert "it follows enumerate()" in str(caught.message)

    def test_names_with_a_scheme_are_named(self, files: list[str]) -> None:
        source = tfr.TFRecordDataset([f"file://{name}" for name in files])
        (caught,) = self.caught_by(source.shuffle(3))
        assert "TensorFlow's own reader" in str(caught.message)
        assert "Instead: names of files on a disk" in str(caught.message)
        assert tfr.explain(source).steps[0].instead.startswith("names of files")

    def test_a_reader_in_a_function_is_said_once(self, files: list[str]) -> None:
        names = tf.data.Dataset.from_tensor_slices(files)
        (caught,) = self.caught(
            lambda: [list(names.interleave(tfr.TFRecordDataset)) for _ in range(2)]
        )
        assert "in a function" in str(caught.message)
        assert "tfr.accelerate" in str(caught.message)
        assert caught.filename == __file__

    def test_parsing_of_single_records_is_said_once(self, files: list[str]) -> None:
        source = tfr.TFRecordDataset(files).map(parse_and_print)
        (caught,) = self.caught_by(source.batch(3), source.batch(4))
        assert "one by one" in str(caught.message)
        assert caught.filename == __file__

    @pytest.mark.parametrize(
        "chain",
        [
            lambda source: source.shuffle(3).batch(4).parse_example(FEATURES).prefetch(1),
            lambda source: source.map(parse_one).shuffle(3).batch(4),
            lambda source: source.map(parse_one).batch(4).batch(2).batch(2),
            lambda source: source.map(parse_and_print).shuffle(3),
            lambda source: source.map(parse_one).map(some_image).batch(4),
            lambda source: source.map(tf.strings.length).shuffle(3).batch(4),
            lambda source: source.shuffle(3).batch(4).map(tf.size).shuffle(3),
            lambda source: source.cache().shuffle(3).filter(lambda _: True).shuffle(3),
        ],
    )
    def test_nothing_is_said_of_what_is_planned(self, files: list[str], chain: Any) -> None:
        assert not self.caught_by(chain(tfr.TFRecordDataset(files)))


def test_the_example_in_the_documentation_is_what_is_printed(files: list[str]) -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "tensorflow.md"
    if not page.exists():
        pytest.skip(f"there is no {page}: run the tests in a checkout")

    def parse(record: Any) -> Any:
        return tf.io.parse_single_example(record, FEATURES)

    dataset = tfr.TFRecordDataset(files).shuffle(10_000).map(parse).batch(64)
    text = str(tfr.explain(dataset.prefetch(tf.data.AUTOTUNE)))
    assert f"```\n{text}\n```" in page.read_text(encoding="utf-8")


def sleepy(seconds: float) -> Any:
    def wait(record: Any) -> Any:
        return tf.numpy_function(lambda each: time.sleep(seconds) or each, [record], tf.string)

    return wait


@pytest.mark.skipif(internals.ModelProto is None, reason="this TensorFlow does not time its parts")
@pytest.mark.parametrize("road", ["for", "keras"])
def test_who_waited_for_whom_is_said_first(files: list[str], road: str) -> None:
    def trained(work: float, training: float) -> str:
        dataset = tfr.TFRecordDataset(files).batch(1).map(sleepy(work)).prefetch(2)
        assert "raining" not in str(tfr.explain(dataset))
        if road == "for":
            for _ in dataset:
                time.sleep(training)
        else:
            step = tf.function(lambda batches: sleepy(training)(next(batches)))
            batches = iter(dataset)
            for _ in range(31):
                step(batches)
            del batches
        return str(tfr.explain(dataset))

    def check() -> None:
        text = trained(work=0.04, training=0.004)
        share = re.match(r"Training waited (\d+)% of the time, mostly for map\(wait\)\.\n", text)
        assert share is not None, text
        assert int(share[1]) > 50
        waiting = re.search(r"^map\(wait\) +([0-9.]+) ", text, re.MULTILINE)
        assert waiting is not None
        assert float(waiting[1]) > 0.9  # of 31 times 0.04 s, the last may be missing
        assert re.search(r"^reading, batch\(1\) ", text, re.MULTILINE)
        text = trained(work=0.001, training=0.06)
        told = re.match(r"(?:Training|Input is .* training, which) waited (\d+)% of the time", text)
        assert told is not None, text
        assert int(told[1]) < 30

    at_least_once(check)  # a busy machine may hold up the work, or the training


@pytest.mark.skipif(internals.ModelProto is None, reason="this TensorFlow does not time its parts")
def test_a_model_that_lacks_a_part_ends_no_iteration(
    files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, parts = internals.model_of, []

    def torn(resource: Any) -> Any:
        model = whole(resource)
        parts.append(len(model.nodes))
        lacking = sorted(set(model.nodes) - {model.output})[len(parts) % 2 :]
        for number in lacking:
            del model.nodes[number]
        return model

    monkeypatch.setattr(internals, "model_of", torn)
    dataset = tfr.TFRecordDataset(files).batch(1).map(sleepy(0.02)).prefetch(2)
    assert len(list(dataset)) == sum(1 for _ in tf.data.TFRecordDataset(files))
    assert str(tfr.explain(dataset))
    assert max(parts) > 2


@pytest.mark.skipif(internals.ModelProto is None, reason="this TensorFlow does not time its parts")
def test_a_fault_ends_the_measurement_and_no_iteration(
    files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    def failing(resource: Any) -> Any:
        looks.append(resource)
        raise LookupError("a fault")

    monkeypatch.setattr(internals, "model_of", failing)
    dataset = tfr.TFRecordDataset(files).batch(1).map(sleepy(0.01)).prefetch(2)
    with pytest.raises(LookupError, match="a fault"):
        list(dataset)
    monkeypatch.setenv("TFRFAST_RAISE_FAULTS", "0")
    assert len(list(dataset)) == sum(COUNTS)
    assert len(looks) == 2
    assert "raining" not in str(tfr.explain(dataset))


def test_lines_fit_a_terminal(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = tfr.TFRecordDataset(files).map(parse_and_print).batch(4)
    whole = str(tfr.explain(dataset))
    assert max(map(len, whole.splitlines())) > 80
    monkeypatch.setattr(explaining, "terminal_width", lambda stream: 80)
    shown = str(tfr.explain(dataset))
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.split() == whole.split()
