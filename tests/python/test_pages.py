"""Runs the code of the pages that need only NumPy. Pages that need a framework run beside that
framework's tests."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import shutil
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
import wire_examples as wire
from quoted_code import ROOT, pages_with_code, run_page, write_shards
from record_files import write_rows, write_shard

if not (ROOT / "docs").exists():
    pytest.skip("there are no pages: run the tests in a checkout", allow_module_level=True)


pytestmark = pytest.mark.usefixtures("own_folder")


def test_every_page_with_code_runs_in_a_test() -> None:
    tests = "\n".join(path.read_text() for path in ROOT.glob("tests/python/**/test_*pages.py"))
    assert pages_with_code() - set(re.findall(r'run_page\(\s*"([^"]+)"', tests)) == set()


def test_the_readme() -> None:
    trained: list[int] = []
    write_shards("imagenet/train", {"image": [b"jpeg"] * 123_457, "label": np.arange(123_457)})
    run_page("README.md", {"train": lambda images, labels: trained.extend(labels.tolist())})
    assert sorted(trained) == list(range(123_457))


def test_instead_of_a_large_shuffle() -> None:
    write_shards("examples/x")
    steps: list[Any] = []
    run_page("docs/beam.md", {"train_step": lambda *columns: steps.append(columns)})
    assert len(steps) == 2
    assert len(tfr.Reader("shuffled/*")) == 300


def test_steps_of_episodes() -> None:
    action, images = np.ones(7 * 1300, np.float32), [b"jpeg"] * 1300
    for prefix, image in (("data/train", "image"), ("droid/d", "image"), ("bridge/b", "image_0")):
        with tfr.ShardedWriter(prefix + ".tfrecord", num_shards=2) as writer:
            for _ in range(10):
                columns = {"steps/action": action, f"steps/observation/{image}": images}
                writer.write(tfr.encode_example(columns))
    frames = wire.entry(b"rgb", wire.field(1, wire.byte_strings(b"jpeg")))
    with tfr.ShardedWriter("yt8m/train", num_shards=1) as shard:
        shard.write(wire.field(2, frames))
    given = {
        "features": {"steps/action": tfr.VarLen("float32")},
        "prepared": types.SimpleNamespace(reader=tfr.Reader("data/train*"), features=None),
    }
    prepared = 'tfr.tfds("~/tensorflow_datasets/droid/1.0.0", split="train").steps()'
    instead = {prepared: "prepared", "data/train-*": "data/train*"}
    done = run_page("docs/steps.md", given, instead)
    assert len(done["steps"]) == 13_000
    assert done["stats"]["steps/action"].quantiles.tolist() == [[1.0] * 7] * 2
    assert len(done["mixture"].reader) == 26_000


def test_distributed_training() -> None:
    write_shards("data/train")
    steps: list[Any] = []
    given = {"epochs": 2, "features": {"label": tfr.FixedLen((), "int64")}}
    run_page("docs/distributed.md", given | {"train_step": steps.append})
    assert len(steps) == 2 * (300 // 64)


def test_looking_at_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfrfast.cli.view.server.Server.serve_forever", lambda server: None)
    write_shards("data/train")
    run_page("docs/view.md")


def test_tuning() -> None:
    write_shards("data/train")
    trained: list[Any] = []
    given = {"features": ["label"], "train_step": trained.append}
    done = run_page("docs/tuning.md", given)
    assert len(trained) == 19
    assert "19 steps" in str(done["timeline"])
    assert Path("run.svg").read_text().startswith("<svg")


def test_exactly_once() -> None:
    write_shards("data/train")
    run_page("docs/exactly-once.md")


def test_keys() -> None:
    write_shards("data/train")
    write_shards("images/x", count=40)
    write_shards("captions/x", count=30)
    done = run_page("docs/keys.md", {"keys": [b"dog_3", b"bird_1"]})
    assert done["records"].find([b"dog_3", b"bird_1"])[1] == -1
    assert len(done["here"]) == len(done["there"]) == 30


def test_comparing_data_sets() -> None:
    for version, count in (("v1", 30), ("v2", 40)):
        columns = {"image/id": np.arange(count), "label": np.arange(count) % (20 + int(version[1]))}
        write_shards(f"{version}/train", columns)
    done = run_page("docs/comparing.md")
    assert [done["found"].same, len(done["found"].changed)] == [21, 9]
    assert len(tfr.Reader("new")) == 10


def test_loading() -> None:
    write_shards("data/train")
    write_shards("photos/train")

    class Checkpoint(io.StringIO):
        def read(self, *_: Any) -> str:
            return self.getvalue()

    given = {
        "json": json,
        "file": Checkpoint(),
        "decode_jpeg": lambda jpeg: np.zeros((2, 2, 3)),
        "features": {"image": tfr.FixedLen((), "bytes")},
    }
    done = run_page("docs/loading.md", given)
    assert next(iter(done["loader"]))["image"].shape == (256, 2, 2, 3)


def test_mixtures() -> None:
    write_shards("web/x")
    write_shards("code/x")
    seen = np.zeros(2, int)
    given = {
        "train": lambda tokens, sources: np.add.at(seen, sources, 1),
        "reader": tfr.Reader("web/*"),
        "class_counts": np.full(10, 30),
        "labels": np.arange(300) % 10,
    }
    run_page("docs/mixtures.md", given, {"10_000_000": "10_000", "100_000": "1_000"})
    assert seen.tolist() == [7000, 3000]


def test_packing() -> None:
    source = np.random.default_rng(0)

    def values() -> Any:
        return source.integers(1, 99, source.integers(1, 400))

    records = [tfr.encode_example({"inputs": values(), "targets": values()}) for _ in range(300)]
    Path("data").mkdir()
    write_shard(Path("data/train-0"), records)
    done = run_page("docs/packing.md")
    assert set(done["t5x"]) >= {"encoder_segment_ids", "decoder_positions", "decoder_loss_weights"}
    segments, bounds = done["segments"], done["cu_seqlens"]
    assert bounds[0] == 0
    assert bounds[-1] == segments.size
    for begin, end in itertools.pairwise(bounds):
        assert len({*segments.ravel()[begin:end].tolist()}) == 1
    # A token is a target unless it begins its record.
    assert (done["labels"] != -100).sum() == (segments > 0).sum() - segments.max(1).sum()
    assert done["mask"].sum(2)[0, :3].tolist() == [1, 2, 3]


def test_tensorflow_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    little = ROOT / "tests/golden/tfds/little/1.0.0"
    shutil.copytree(little, tmp_path / "tensorflow_datasets/mnist/3.0.1")
    from_url = 'tfr.tfds("gs://bucket/mnist/3.0.1", split="train", storage={...}, cache=cache)'
    here = 'tfr.tfds("~/tensorflow_datasets/mnist/3.0.1", split="train")'
    run_page("docs/tfds.md", instead={from_url: here, 'batch["label"] ': 'batch["id"] '})


def test_sets_that_change() -> None:
    write_shards("data/other")
    write_rows(
        "data/train-0",
        ({"user": b"u_%d" % (number % 1000), "label": number} for number in range(50_000)),
    )
    shutil.copy("data/train-0", "data/train-00000-of-00001")
    os.remove("data/train-0")
    write_shards("new/other", count=100)
    condition = 'where="label = 3 AND score < 0.1"'
    state = tfr.Loader("data/train-*", 256, seed=1).state_dict()
    given = {"examples_of_today": [{"user": b"u_1", "label": 1}] * 10, "state": state}
    run_page("docs/living.md", given, {condition: "records=[3]"})
    assert len(tfr.Reader("data/train-*")) == 50_000 + 110 - 100 - 1 - 2


def test_writing() -> None:
    given = {
        "record": b"a record",
        "record_batch": [b"another", b"one"],
        "jpeg_bytes": b"a picture",
        "photos": [b"a picture"] * 64,
        "labels": [1, 2, 3, 4],
        "matrix": np.ones((4, 13)),
        "values": np.arange(5),
        "row_splits": np.array([0, 2, 2, 4, 5]),
    }
    done = run_page("docs/writing.md", given, {'"b", None, ...': '"b", None, "d"'})
    assert done["made"].splits["test"]


def test_pages_install_from_the_sources() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    assert [page.name for page in pages if "tfrfast[" in page.read_text(encoding="utf-8")] == []
