"""`tfrfast run`, install() and `%load_ext`: programs whose datasets are accelerated unedited."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from patience import PATIENCE_S

tf = pytest.importorskip("tensorflow")
adapter = pytest.importorskip("tfrfast.tensorflow")
internals = pytest.importorskip("tfrfast.tensorflow.internals")

RECORDS = [[b"%d-%d" % (shard, i) for i in range(40)] for shard in range(3)]
EVERY = Counter(record for records in RECORDS for record in records)
SPEC = {
    "x": tf.io.FixedLenFeature([2], tf.float32),
    "y": tf.io.FixedLenFeature([1], tf.float32),
}


@pytest.fixture
def installed() -> Iterator[None]:
    adapter.install()
    yield
    adapter.uninstall()


@pytest.fixture
def pattern(tmp_path: Path) -> str:
    for shard, records in enumerate(RECORDS):
        with tfr.Writer(tmp_path / f"data-{shard}") as writer:
            for record in records:
                writer.write(record)
    return str(tmp_path / "data-*")


def chain(pattern: str) -> Any:
    names = tf.data.Dataset.list_files(pattern, shuffle=False)
    return names.interleave(tf.data.TFRecordDataset, cycle_length=2).shuffle(50).batch(16)


def has_our_ops(dataset: Any) -> bool:
    text = tf.raw_ops.DatasetToGraphV2(input_dataset=dataset._variant_tensor)
    return b"Tfrfast" in text.numpy()


def drawn(dataset: Any) -> Any:
    return dataset._apply_debug_options()


def records_of(batches: Any) -> Counter[bytes]:
    return Counter(record for batch in batches for record in batch.tolist())


def test_every_way_of_iterating_is_accelerated(installed: None, pattern: str) -> None:
    dataset = chain(pattern)
    count = lambda total, batch: total + tf.size(batch)  # noqa: E731

    @tf.function
    def loop() -> Any:
        total = 0
        for batch in dataset:
            total += tf.size(batch)
        return total

    assert records_of(batch.numpy() for batch in dataset) == EVERY
    assert records_of(dataset.as_numpy_iterator()) == EVERY
    assert int(dataset.reduce(0, count)) == int(loop()) == 120
    assert has_our_ops(drawn(dataset))
    assert not has_our_ops(dataset)
    graph = loop.get_concrete_function().graph
    texts = [
        tf.raw_ops.DatasetToGraphV2(input_dataset=each).numpy()
        for each, _ in graph.captures
        if each.dtype == tf.variant
    ]
    assert any(b"Tfrfast" in text for text in texts)


def test_an_object_is_accelerated_once_and_keeps_its_looks(installed: None, pattern: str) -> None:
    dataset = chain(pattern)
    looks = (repr(dataset), type(dataset), dataset.element_spec, int(dataset.cardinality()))
    sum(1 for _ in dataset)
    faster = dataset._tfrfast_accelerated
    sum(1 for _ in dataset)
    assert dataset._tfrfast_accelerated is faster
    assert looks == (repr(dataset), type(dataset), dataset.element_spec, int(dataset.cardinality()))


def test_what_leaves_the_process_stays_plain(installed: None, pattern: str, tmp_path: Path) -> None:
    from tensorflow.python.distribute.coordinator import values

    dataset = chain(pattern)
    assert b"Tfrfast" not in values.serialize_dataset_to_graph(dataset).numpy()
    dataset.save(str(tmp_path / "saved"))
    assert records_of(tf.data.Dataset.load(str(tmp_path / "saved")).as_numpy_iterator()) == EVERY
    for _ in range(2):
        kept = tf.data.TFRecordDataset(tf.io.gfile.glob(pattern)).snapshot(str(tmp_path / "kept"))
        assert sum(1 for _ in kept) == 120
    assert len([each for each in (tmp_path / "kept").iterdir() if each.is_dir()]) == 1


def test_a_saved_model_holds_what_tensorflow_reads(
    installed: None, pattern: str, tmp_path: Path
) -> None:
    class Counting(tf.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.dataset = chain(pattern)

        @tf.function  # type: ignore[untyped-decorator]
        def count(self) -> Any:
            total = 0
            for batch in self.dataset:
                total += tf.size(batch)
            return total

    counting = Counting()
    assert int(counting.count()) == 120
    assert counting.dataset._tfrfast_accelerated is not None
    tf.saved_model.save(counting, str(tmp_path / "model"))
    assert b"Tfrfast" not in (tmp_path / "model/saved_model.pb").read_bytes()
    assert int(tf.saved_model.load(str(tmp_path / "model")).count()) == 120


def test_keras_trains_and_predicts(installed: None, tmp_path: Path) -> None:
    for shard in range(2):
        with tfr.Writer(tmp_path / f"data-{shard}") as writer:
            for i in range(40):
                x = np.float32([shard * 40 + i, 1])
                writer.write(tfr.encode_example({"x": x, "y": np.float32([i])}))

    def parse(record: Any) -> Any:
        row = tf.io.parse_single_example(record, SPEC)
        return row["x"], row["y"]

    names = tf.data.Dataset.list_files(str(tmp_path / "data-*"))
    batches = names.interleave(tf.data.TFRecordDataset).shuffle(80).map(parse).batch(16)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, use_bias=False)])
    model.compile("sgd", "mse")
    seen: list[int] = []
    count = tf.keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(batch)
    )
    model.fit(batches.prefetch(2), epochs=2, verbose=0, callbacks=[count])
    assert seen == [0, 1, 2, 3, 4] * 2
    model.set_weights([np.float32([[1], [0]])])
    predicted = model.predict(batches, verbose=0)
    assert sorted(predicted.ravel().tolist()) == list(range(80))
    assert batches._tfrfast_accelerated is not None


def test_strategies_iterate_what_is_accelerated(installed: None, pattern: str) -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    shared = strategy.experimental_distribute_dataset(chain(pattern))
    assert records_of(batch.numpy() for batch in shared) == EVERY


def test_uninstall_is_the_way_back(pattern: str) -> None:
    adapter.install()
    adapter.uninstall()
    dataset = chain(pattern)
    assert records_of(dataset.as_numpy_iterator()) == EVERY
    assert not hasattr(dataset, "_tfrfast_accelerated")


def test_the_switch_makes_install_do_nothing(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFRFAST_ACCELERATE", "0")
    adapter.install()
    assert not has_our_ops(drawn(chain(pattern)))


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tfrfast", "run", *arguments],
        env={**os.environ, **environment},
        cwd=Path(tfr.__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


SCRIPT = """
import os, pickle, sys
import marker
class Own: pass
pickle.dumps(Own())
print(sys.argv, sys.path[0], __name__, os.environ["PYTHONPATH"], marker.seen)
print("tensorflow" in sys.modules, type(sys.meta_path[0]).__module__)
def fail(): raise LookupError("ours")
fail() if "fail" in sys.argv else sys.exit(7)
"""


def test_a_script_without_tensorflow_is_the_script(tmp_path: Path) -> None:
    """The environment's own sitecustomize runs, too."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/marker.py").write_text("seen = []")
    (tmp_path / "lib/sitecustomize.py").write_text(
        "import marker, sys; marker.seen.append(1); assert 'fail' not in sys.argv, 'theirs'"
    )
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin/train.py"
    script.write_text(SCRIPT)
    lib = str(tmp_path / "lib")
    done = run(str(script), "--explain", "-m", "x", PYTHONPATH=lib)
    assert done.returncode == 7, done.stderr
    first, second = done.stdout.splitlines()
    argv = [str(script), "--explain", "-m", "x"]
    assert first == f"{argv} {tmp_path / 'bin'} __main__ {lib} [1]"
    assert second == "False tfrfast.startup.waiting"
    failed = run(str(script), "fail", PYTHONPATH=lib)
    assert failed.returncode == 1
    assert failed.stdout.splitlines()[1] == second
    assert failed.stderr.startswith("Error in sitecustomize; set PYTHONVERBOSE for traceback:\n")
    assert "tfrfast" not in failed.stderr
    assert failed.stderr.endswith("LookupError: ours\n")


def test_a_program_is_named(tmp_path: Path) -> None:
    for arguments in ([], ["-m"], ["--explian", "x.py"]):
        failed = run(*arguments)
        assert failed.returncode == 2
        assert "Traceback" not in failed.stderr
        assert "ame the program" in failed.stderr


def test_the_report_comes_though_tensorflow_times_no_part(pattern: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, time, tensorflow as tf\n"
        "from tfrfast.tensorflow import internals\n"
        "whole = internals.model_of\n"
        "def bare(resource):\n"
        "    model = whole(resource)\n"
        "    for number in set(model.nodes) - {model.output}: del model.nodes[number]\n"
        "    print('timed')\n"
        "    return model\n"
        "internals.model_of = bare\n"
        "for _ in tf.data.TFRecordDataset(tf.io.gfile.glob(sys.argv[1])).shuffle(50).batch(8):\n"
        "    time.sleep(0.02)\n"
    )
    done = run("--explain", str(script), pattern)
    assert done.returncode == 0, done.stderr
    assert done.stdout or internals.ModelProto is None
    told = done.stderr[done.stderr.index("tfrfast: the treatment of") :]
    assert f"{script}:10\n" in told
    assert "shuffle(50)" in told


def test_explain_says_where_each_dataset_was_built(pattern: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, time, tensorflow as tf\n"
        "names = tf.data.Dataset.list_files(sys.argv[1])\n"
        "dataset = names.interleave(tf.data.TFRecordDataset).shuffle(50).batch(16)\n"
        "print(sum(len(batch) for batch in dataset))\n"
        "print(sum(1 for _ in tf.data.Dataset.range(3)))\n"
        "def made(batch): return tf.data.TFRecordDataset(tf.io.gfile.glob(sys.argv[1]))"
        ".map(tf.strings.length).batch(batch).prefetch(1)\n"
        "for dataset in (made(1), made(2), made(2)):\n"
        "    for _ in dataset: time.sleep(0.002)\n"
    )
    done = run("--explain", str(script), pattern)
    assert done.stdout == "120\n3\n", done.stderr
    told = done.stderr[done.stderr.index("tfrfast: the treatment of") :]
    factory = told[told.index(f"{script}:6\n") :]
    alike = told[told.index(f"{script}:6 (2 datasets)\n") :]
    if internals.ModelProto is not None:
        assert "batch(1) " in factory
        assert "batch(2) " in alike
        assert len(re.findall("(Input is|Training waited) ", factory)) == 2
    assert f"{script}:3\n" in told
    assert "shuffle(50)" in told
    assert "fused" in told
    assert f"{script}:5\n" in told
    assert "reads no TFRecord files" in told
