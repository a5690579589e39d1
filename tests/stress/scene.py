"""The scene of a round: shards of known records, a road to them, and the verdict on what it says."""

from __future__ import annotations

import collections
import gzip
import random
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from own_server import start_server
from record_files import make_cold
from road import ORDERED, PICTURES, PUBLISHES, SERVED, WRITES, Opened, Road, Task
from tfrecord_model import scan
from truth import Item, State, Total, Truth, is_clear, some_texts, write


@dataclass
class Scene:
    road: Road
    chosen: random.Random
    #: An empty folder of the round.
    folder: Path
    files: list[Path] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    compression: str | None = None
    #: Arguments of own_server.start_server.
    link: dict[str, Any] = field(default_factory=dict)
    #: What the attack has chosen, for its failure.
    case: str = ""
    #: Epochs that were judged, how many of them ended in an error, and their records.
    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    _url: str = ""

    def set_up(self, shards: int | None = None, most: int = 400, may_pack: bool = True) -> None:
        """Writes some shards; seldom more than a Reader opens at once."""
        if shards is None:
            shards = 66 if self.chosen.random() < 0.1 else self.chosen.randrange(1, 5)
        most = 2 if shards > 9 else most
        packs = may_pack and self.chosen.random() < 0.2
        self.compression = self.chosen.choice(["GZIP", "ZLIB"]) if packs else None
        (self.folder / "data").mkdir(exist_ok=True)
        for shard in range(shards):
            self.files.append(self.folder / "data" / f"shard-{shard:03}")
            self.states.append(self.state_of(some_texts(self.chosen, shard, most=most)))
            write(self.files[-1], self.states[-1].records, self.compression)
        if self.chosen.random() < 0.1:
            for file in self.files:
                make_cold(file)
        if SERVED in self.road.has:  # before the limits of the attack
            self._url = start_server(self.folder / "data", **self.link)

    def state_of(self, texts: Sequence[bytes]) -> State:
        return State.of(texts, PICTURES in self.road.has)

    def task(self, **more: Any) -> Task:
        """Returns a task with a folder of its own in this process."""
        out = self.folder / "out"
        out.mkdir(exist_ok=True)
        paths = [str(file) for file in self.files]
        if SERVED in self.road.has:
            paths = [f"{self._url}/set/{file.name}" for file in self.files]
        more["compression"] = self.compression
        more.setdefault("records", [record for state in self.states for record in state.records])
        return Task(paths, out, random.Random(self.chosen.random()), **more)

    def open(self, **more: Any) -> Opened:
        return self.road.open(self.task(**more))

    def truth(self, *others: Sequence[State], in_place: Sequence[int] = ()) -> Truth:
        """Returns the truth of shards that are as they were, or as in another list of states."""
        return Truth([list(each) for each in zip(self.states, *others, strict=True)], in_place)

    def judge(self, truth: Truth, said: Outcome, in_order: bool = True) -> None:
        """Checks what an epoch said."""
        in_order = in_order and ORDERED in self.road.has
        self.counts.update(epochs=1, errors=said.error is not None, records=len(said.items))
        if WRITES in self.road.has:
            # What is written is one sequence, which no longer has the shards of the scene.
            truth = Truth([[joined([states[0] for states in truth.shards])]])
        truth.judge(said.items, said.error, in_order=in_order)

    def check_outputs(self) -> None:
        """What the road has published so far is whole."""
        if PUBLISHES in self.road.has:
            for path in (self.folder / "out").glob("[!.]*"):
                if path.is_file() and path.suffix != ".parquet":
                    data = path.read_bytes()
                    frames, damage = scan(gzip.decompress(data) if path.suffix == ".gz" else data)
                    assert damage == [each for each in frames if not each.payload_is_good] == []

    def check_exact(self) -> None:
        """A new run of the road returns all records, without an error."""
        said = outcome(self.open())
        assert said.error is None, f"a new run fails: {said.error!r}"
        self.judge(self.truth(), said)


def joined(states: Sequence[State]) -> State:
    texts = [text for state in states for text in state.texts]
    records = [record for state in states for record in state.records]
    return State(texts, records, list(range(len(texts))), len(texts))


@dataclass
class Outcome:
    items: list[Item | Total]
    error: BaseException | None


def outcome(
    opened: Opened | Callable[[], Opened], act: Callable[[], object] | None = None, after: int = 0
) -> Outcome:
    """Returns an epoch's items, and the clear error that ended it. Acts after some items."""
    items: list[Item | Total] = []
    error = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            opened = opened() if callable(opened) else opened
            for item in opened.epoch():
                items.append(item)
                if act is not None and len(items) == after:
                    act()
    except Exception as caught:
        if not is_clear(caught):
            raise
        error = caught
    return Outcome(items, error)


def meanwhile(act: Callable[[], object], delay_s: float) -> threading.Thread:
    """Acts in another thread, a little later. Join the thread."""

    def run() -> None:
        time.sleep(delay_s)
        act()

    thread = threading.Thread(target=run)
    thread.start()
    return thread
