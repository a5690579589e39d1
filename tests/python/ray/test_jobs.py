"""Jobs as Ray's tasks: the same results, on nodes that may die."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr
from patience import PATIENCE_S
from record_files import flip_payload_byte
from tfrfast.jobs import running
from tfrfast.jobs.chosen_records import ShardSizes
from tfrfast.jobs.copying import plan_shards
from tfrfast.jobs.running import run_tasks
from tfrfast.storage.output import Output
from tfrfast.writing.shard_set import ShardSet

pytest.importorskip("tfrfast.ray", exc_type=ModuleNotFoundError)
from ray import cloudpickle

from tfrfast.ray import executor
from tfrfast.ray.executor import RayExecutor

ID = {"id": tfr.FixedLen((), "int64")}


@pytest.fixture
def data(tmp_path: Path) -> list[str]:
    from example_files import write_examples

    folder = tmp_path / "data"
    folder.mkdir()
    return list(write_examples(folder, [700, 1, 799]))


@pytest.fixture
def two_nodes(cluster: Any) -> list[Any]:
    import ray

    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    return nodes


def test_with_waits_for_the_tasks(local_ray: Any) -> None:
    with RayExecutor() as pool:
        slow = pool.submit(time.sleep, 0.5)
    assert slow.done()


def test_a_worker_works_after_its_folder_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    call = cloudpickle.dumps((os.getcwd, (), {}))
    assert executor._call(str(tmp_path), call) == str(tmp_path)


def test_records_are_copied(
    local_ray: Any, data: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = np.random.default_rng(3).permutation(1500)
    monkeypatch.chdir(tmp_path)  # the workers are in another folder
    made = tfr.copy(
        "data/*", numbers, "out/x", num_shards=4, compression="GZIP", executor=RayExecutor()
    )
    copied = tfr.Reader(made.paths, index="require")
    reader = tfr.Reader(data)
    assert list(copied) == [reader[int(number)] for number in numbers]
    assert sorted(os.listdir("out")) == [f"x-{n:05}-of-00004" for n in range(4)]


def test_records_are_shuffled(
    local_ray: Any, data: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the workers are in another folder
    options: dict[str, Any] = {"num_shards": 6, "splits": {"a": 0.8, "b": 0.2}, "seed": 4}
    one = tfr.shuffle(data, "one/x", **options)
    made = tfr.shuffle("data/*", "out/x", executor=RayExecutor(), **options)
    assert [Path(p).read_bytes() for p in made.paths] == [Path(p).read_bytes() for p in one.paths]
    assert made[2:] == one[2:]
    assert len(tfr.Reader(made.paths, index="require")) == 1500
    assert os.listdir("out.tfrfast") == ["index"]


def test_steps_are_found(local_ray: Any, tmp_path: Path) -> None:
    paths = [str(tmp_path / f"robots-{shard}") for shard in range(3)]
    for shard, path in enumerate(paths):
        with tfr.Writer(path) as writer:
            for steps in range(1, 20):
                image = [b"x" * (each + shard) for each in range(steps)]
                writer.write(tfr.encode_example({"s/n": range(steps), "s/image": image}))
    from tfrfast.cli import main

    made = tfr.build_steps(paths, along="s/", executor=RayExecutor())
    found = Path(made).read_bytes()
    assert main(["index", "--steps", "s/", "--ray", *paths]) == 0
    assert Path(made).read_bytes() == found
    assert tfr.build_steps(paths, along="s/", threads=1) == made
    assert Path(made).read_bytes() == found


def test_the_error_is_that_of_the_task(local_ray: Any, data: list[str], tmp_path: Path) -> None:
    flip_payload_byte(data[2], tfr.Reader(data[2]), 500)
    with pytest.raises(tfr.CorruptRecordError, match="record 500") as raised:
        tfr.copy(data, slice(None), tmp_path / "out" / "x", num_shards=4, executor=RayExecutor())
    assert type(raised.value) is tfr.CorruptRecordError
    assert raised.value.path == data[2]
    assert not (tmp_path / "out").exists()


def test_commands_run_on_ray(
    local_ray: Any, data: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tfrfast.cli import main

    (tmp_path / "numbers").write_text("7 3 1499")
    assert main(["index", "--ray", *data]) == 0
    assert "3 indexes built" in capsys.readouterr().out
    assert main(["verify", *data, "--ray"]) == 0
    assert "1,500 records in 3 shards" in capsys.readouterr().out
    assert main(["keys", "--ray", *data, "--by", "id"]) == 0
    folder = str(tmp_path / "data")
    assert main(["diff", "--ray", folder, folder, "--key", "id"]) == 0
    assert "the same        1,500" in capsys.readouterr().out
    copying = ["--records", str(tmp_path / "numbers"), "--out", str(tmp_path / "x")]
    assert main(["copy", "--ray", *data, *copying]) == 0
    reader = tfr.Reader(data)
    made = tfr.Reader(str(tmp_path / "x-00000-of-00001"))
    assert list(made) == [reader[7], reader[3], reader[1499]]
    shuffling = ["--out", str(tmp_path / "mixed"), "--num-shards", "2"]
    assert main(["shuffle", "--ray", *data, *shuffling]) == 0
    assert "1,500 records" in capsys.readouterr().out
    assert (
        main(["export", "--ray", *data, "--out", str(tmp_path / "x.parquet"), "--columns", "id"])
        == 0
    )
    assert (tmp_path / "x.parquet").exists()
    assert main(["verify", "--ray", str(tmp_path / "absent")]) == 2
    assert "absent" in capsys.readouterr().err


def test_names_lead_to_the_files_they_lead_to_here(
    local_ray: Any, data: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tfrfast.cli import main

    here = tmp_path / "[here]"
    here.mkdir()
    monkeypatch.chdir(here)
    os.symlink(tmp_path / "data" / "below", "link")
    (tmp_path / "data" / "below").mkdir()
    with tfr.Writer("s-00000") as writer:
        writer.write_example({"id": 1})
    os.symlink(data[0], tmp_path / "data" / "s-00000")
    assert tfr.verify("link/../s-00000", executor=RayExecutor()).num_records == 700
    assert main(["keys", "--ray=", "s-*", "--by", "id"]) == 0
    made = tfr.copy("s-*", [0], "x", index_folder="indexes", executor=RayExecutor())
    assert len(tfr.Reader(made.paths)) == 1
    tfr.export("link/../s-00000", "link/../out", columns=["id"], executor=RayExecutor())
    assert (tmp_path / "data" / "out").exists()


class Held:
    """A task that waits for permission, and never gets it on one of the nodes."""

    def __init__(self, task: Any, number: int, folder: str, victim: str) -> None:
        self.task = task
        self.amount = task.amount
        self.number = number
        self.folder = folder
        self.victim = victim

    def run(self, advance: Any) -> Any:
        import ray

        node = ray.get_runtime_context().get_node_id()
        Path(self.folder, f"{self.number}-on-{node}").touch()
        wait_for(lambda: node != self.victim and os.path.exists(os.path.join(self.folder, "go")))
        return self.task.run(advance)


class Endless:
    """Runs until it is interrupted. The other task fails once this task runs."""

    amount = 1

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def run(self, advance: Any) -> None:
        Path(self.folder, "begun").touch()
        try:
            wait_for(lambda: False)
        except BaseException as error:
            Path(self.folder, "ended").write_text(type(error).__name__)
            raise


class Ignoring(Endless):
    """Runs until it is interrupted, in a worker that ignores SIGINT like the workers of a driver in
    the background.
    """

    def run(self, advance: Any) -> None:
        from ray import cloudpickle

        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            called = (Endless.run, (self, advance), {})
            executor._call(os.getcwd(), cloudpickle.dumps(called))
        finally:
            assert signal.signal(signal.SIGINT, before) is signal.SIG_IGN


class Failing(Endless):
    def run(self, advance: Any) -> None:
        wait_for(lambda: os.path.exists(os.path.join(self.folder, "begun")))
        raise LookupError("no 7")


@pytest.mark.parametrize("kind", [Endless, Ignoring])
def test_an_error_ends_the_other_tasks(local_ray: Any, tmp_path: Path, kind: Any) -> None:
    tasks: list[Any] = [kind(str(tmp_path)), Failing(str(tmp_path))]
    with pytest.raises(LookupError, match="no 7"):
        list(run_tasks(tasks, RayExecutor(), None, lambda newly: None))
    assert (tmp_path / "ended").read_text() == "KeyboardInterrupt"


class Stubborn:
    """Continues after an interruption."""

    amount = 1

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def run(self, advance: Any) -> None:
        Path(self.folder, "process").write_text(str(os.getpid()))
        Path(self.folder, "begun").touch()
        while True:
            try:
                wait_for(lambda: False)
            except BaseException:
                Path(self.folder, "interrupted").touch()


def test_a_second_interruption_kills_the_tasks(
    local_ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(left: list[Any]) -> None:
        assert len(left) == 1
        wait_for(lambda: (tmp_path / "interrupted").exists() or left[0].done())
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "wait", wait)
    tasks: list[Any] = [Stubborn(str(tmp_path)), Failing(str(tmp_path))]
    with pytest.raises(KeyboardInterrupt):
        list(run_tasks(tasks, RayExecutor(), None, lambda newly: None))
    process = int((tmp_path / "process").read_text())
    wait_for(lambda: not os.path.exists(f"/proc/{process}"))


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_tasks_of_a_node_that_dies_run_elsewhere(
    cluster: Any, two_nodes: list[Any], data: list[str], tmp_path: Path
) -> None:
    victim = two_nodes[0].node_id
    seen = tmp_path / "seen"
    seen.mkdir()

    def kill() -> None:
        wait_for(lambda: list(seen.glob(f"*-on-{victim}")))
        cluster.remove_node(two_nodes[0], allow_graceful=False)
        (seen / "go").touch()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    reader = tfr.Reader(data)
    numbers = np.random.default_rng(4).permutation(1500)
    out = str(tmp_path / "out" / "x")
    output = Output(out, index=True, index_folder=b"", sync=False, overwrite=False)
    with ShardSet(output, num_shards=6, compression=None, level=None) as shard_set:
        tasks = plan_shards(
            ShardSizes(reader), numbers, np.arange(250, 1501, 250), shard_set.unpublished
        )
        held = [Held(task, i, str(seen), victim) for i, task in enumerate(tasks)]
        written = list(run_tasks(held, RayExecutor(), None, lambda newly: None))
        paths = shard_set.publish([each.paths[0] for each in written])
    killer.join()
    lost = {path.name.split("-")[0] for path in seen.glob(f"*-on-{victim}")}
    assert lost
    assert all(len(list(seen.glob(f"{number}-on-*"))) == 2 for number in lost)
    assert list(tfr.Reader(paths, index="require")) == [reader[int(n)] for n in numbers]
    assert len(os.listdir(tmp_path / "out")) == 6
