"""The data set that the page shows. Every answer is plain data for JSON."""

from __future__ import annotations

import contextlib
import random
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfrfast.cli.plain import plain, plain_stats
from tfrfast.cli.view.values import (
    EXACT,
    RECORD,
    ROW,
    cut_name,
    leaves_of,
    media_of,
    messages_of,
    records_of,
    strings_of,
)
from tfrfast.errors import RecordError
from tfrfast.example.parsing import parse_example
from tfrfast.messages import MessageFeature
from tfrfast.order import Plan, Shuffle
from tfrfast.reader import Reader
from tfrfast.steps.steps import Steps
from tfrfast.tables.selecting import records_where
from tfrfast.tables.statistics import statistics
from tfrfast.tfds_folder.kinds import FeatureKind, is_tfds_folder, kinds_of
from tfrfast.tfds_folder.tfds import along_of_steps, tfds

_MOST_ROWS = 64  # as many as the page asks for
_MOST_BYTES = 32 << 20
_MOST_SAMPLED = 1 << 20
_SHOWN_SHARDS = 1000
_SHOWN_DAMAGE = 1000
_SHOWN_STATISTICS = 1000
_KEPT_CHOICES = 16


class Choice(NamedTuple):
    """Chosen records, in the order of the list."""

    numbers: Any
    what: str


class DataSet:
    """Records of shards. Many threads may ask at once."""

    def __init__(
        self,
        paths: list[str],
        *,
        steps: str | None = None,
        split: str | None = None,
        features: dict[str, MessageFeature] | None = None,
    ) -> None:
        """`features` are the fields of records that hold other messages than Examples."""
        self.title = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
        self._kinds: Mapping[str, FeatureKind] = {}
        self._features = features
        self._choices: OrderedDict[int, Choice] = OrderedDict()
        self._lock = threading.Lock()
        #: The record numbers of a split that is a part of its shards.
        self._indices: Any = None
        along: Any = steps
        if len(paths) == 1 and is_tfds_folder(paths[0]):
            opened = tfds(paths[0], split or "all", on_corruption="skip")
            self._reader: Reader = opened.reader
            self._kinds = kinds_of(paths[0], opened._described)
            self._indices = opened.indices
            with contextlib.suppress(ValueError):  # its records are no episodes
                along = along or along_of_steps(opened)
        elif split is not None:
            raise ValueError("--split is of a folder of TensorFlow Datasets. Name the shards.")
        else:
            self._reader = Reader(paths, on_corruption="skip")
        self._steps: Steps | None = None
        self._without_steps = ""
        if along:
            try:
                self._steps = Steps(self._reader, along=along)
            except RecordError as error:
                self._without_steps = f"Without steps: {error}"
        counts = [shard.num_records for shard in self._reader.shards]
        self._starts: list[int] = np.cumsum([0, *counts]).tolist()
        self._shard_of = {shard.path: at for at, shard in enumerate(self._reader.shards)}
        self._counting = _Counting(self._reader, self._indices, features)

    def close(self) -> None:
        self._counting.stop()
        self._reader.close()

    def __len__(self) -> int:
        return len(self._reader) if self._indices is None else len(self._indices)

    def facts(self) -> dict[str, Any]:
        """Returns what the set is."""
        shards = self._reader.shards
        listed = [
            {
                "path": shard.path,
                "records": shard.num_records,
                "bytes": shard.num_bytes,
                "compression": shard.compression or "none",
                "index": shard.index or "in memory",
                "first": first,
            }
            for shard, first in zip(shards[:_SHOWN_SHARDS], self._starts, strict=False)
        ]
        return {
            "title": self.title,
            "records": len(self),
            "is_split": self._indices is not None,
            "numbered": len(self._reader),  # a split has some of these records
            "shards": len(shards),
            "bytes": sum(shard.num_bytes for shard in shards),
            "listed": listed,
            **self._damage(),
            "kinds": plain(self._kinds),
            "steps": None if self._steps is None else len(self._steps),
            "along": [] if self._steps is None else list(self._steps._known_features()),
            "without_steps": self._without_steps,
        }

    def rows(self, chosen: int, at: int, count: int, num_damaged: int = -1) -> dict[str, Any]:
        """Returns some records of a choice, for a list; 0 stands for all records. Adds the damage
        unless it is `num_damaged` places.
        """
        numbers = self._numbers(chosen, max(at, 0), min(max(count, 0), _MOST_ROWS))
        sizes = np.cumsum([self._reader.locate(number).length for number in numbers])
        numbers = numbers[: max(1, int(np.searchsorted(sizes, _MOST_BYTES, "right")))]
        rows = self._shown(numbers, ROW)
        return {"rows": rows} | ({} if len(self._reader.skipped) == num_damaged else self._damage())

    def record(self, number: int) -> dict[str, Any]:
        """Returns one record as a whole, and its place."""
        if not 0 <= number < len(self._reader):
            raise IndexError(f"There is no record {number:,}: there are {len(self._reader):,}.")
        (shown,) = self._shown([number], RECORD)
        place = self._reader.locate(number)
        shown["place"] = {
            "path": self._reader.shards[place.shard].path,
            "number": number - self._starts[place.shard],
            "offset": place.offset,
        }
        if self._steps is not None:
            shown["steps"] = int(self._steps.episodes.lengths[number])
        return shown

    def value(self, number: int, feature: str | None, at: int) -> tuple[str, bytes]:
        """Returns a byte string of a feature, or the record, and a browser's type for it; "" for
        unknown bytes.
        """
        record = self._reader[number]
        value = record
        if feature is not None and self._features is not None:
            columns = parse_example([record], {feature: self._features[feature]})
            value = self._at(at, [*leaves_of(columns[feature].tolist())], number, feature)
        elif feature is not None:
            value = self._at(at, strings_of(record, feature), number, feature)
        return media_of(value) or ("", value)

    @staticmethod
    def _at(at: int, values: Any, number: int, feature: str) -> Any:
        if not 0 <= at < len(values):
            raise IndexError(
                f"Record {number:,} has {len(values):,} values of {feature!r} that the page shows, "
                f"and no value {at:,}."
            )
        return values[at]

    def choose(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """Keeps a choice of records, and returns its number. Raises what users may have mistyped as
        ValueError, KeyError and so on.
        """
        found = _CHOICES[asked["by"]](self, asked)
        with self._lock:
            number = max(self._choices, default=0) + 1
            self._choices[number] = found
            while len(self._choices) > _KEPT_CHOICES:
                self._choices.popitem(last=False)
        return {"chosen": number, "records": len(found.numbers), "what": found.what}

    def statistics(self) -> dict[str, Any]:
        """Returns the statistics of all features, or how far the count has come. The first call
        begins it.
        """
        return self._counting.state()

    def _numbers(self, chosen: int, at: int, count: int) -> list[int]:
        if not chosen:
            if self._indices is None:
                return list(range(at, min(at + count, len(self))))
            return [int(number) for number in self._indices[at : at + count]]
        with self._lock:
            if chosen not in self._choices:
                raise ValueError("This choice is no longer kept. Ask for the records again.")
            numbers = self._choices[chosen].numbers[at : at + count]
        return [int(number) for number in numbers]

    def _shown(self, numbers: list[int], limits: Any) -> list[dict[str, Any]]:
        """Returns records for the page. An unreadable record has the reason instead of features."""
        found = {row["record"]: row for row in self._read(numbers, limits)}
        return [found.get(number) or self._unreadable(number) for number in numbers]

    def _read(self, numbers: list[int], limits: Any) -> Any:
        if not numbers:
            return []
        try:
            batches = [self._reader.read(numbers)]
            if self._features is not None:
                return list(messages_of(batches, self._features, limits))
            return list(records_of(batches, limits))
        except (RecordError, OSError, MemoryError) as error:
            if len(numbers) == 1:
                return [{"record": numbers[0], "damaged": str(error)}]
        middle = len(numbers) // 2
        return self._read(numbers[:middle], limits) + self._read(numbers[middle:], limits)

    def _unreadable(self, number: int) -> dict[str, Any]:
        reason = "This record is damaged."
        try:
            self._reader[number]
        except (RecordError, OSError, MemoryError) as error:
            reason = str(error)
        return {"record": number, "damaged": reason}

    def _damage(self) -> dict[str, Any]:
        """Returns the number of damaged places, and the first places, each with the number of the
        record that follows the beginning of the damage.
        """
        found = []
        skipped = self._reader.skipped
        for each in skipped[:_SHOWN_DAMAGE]:
            shard = self._shard_of[each.path]
            before = int(np.searchsorted(self._reader.shards[shard].offsets, each.begin))
            found.append({**each._asdict(), "at": self._starts[shard] + before})
        return {"num_damaged": len(skipped), "damage": found}

    def _by_sample(self, asked: Mapping[str, str]) -> Choice:
        count = min(max(_whole(asked, "count", 100), 0), len(self), _MOST_SAMPLED)
        seed = _whole(asked, "seed", 0)
        places = sorted(random.Random(seed).sample(range(len(self)), count))
        numbers = places if self._indices is None else np.sort(self._indices[places])
        return Choice(numbers, f"at random (seed {seed})")

    def _by_condition(self, asked: Mapping[str, str]) -> Choice:
        self._refuse_messages("A condition")
        condition = asked["condition"]
        found: Any = records_where(self._reader, condition) if len(self._reader) else []
        return Choice(self._of_split(found), f"where {condition}")

    def _refuse_messages(self, what: str) -> None:
        if self._features is not None:
            raise ValueError(
                f"{what} names features of tf.train.Examples, and these records hold other "
                "messages. Look at all records, a random sample, or a training step."
            )

    def _by_key(self, asked: Mapping[str, str]) -> Choice:
        self._refuse_messages("A key")
        feature, key = asked["feature"], asked["key"]
        keyed = self._reader.by_key(feature)
        found = keyed.all(keyed._parse(key))
        return Choice(self._of_split(found.indices), f"{feature} is {key}")

    def _of_split(self, numbers: Any) -> Any:
        return numbers if self._indices is None else np.intersect1d(numbers, self._indices)

    def _by_step(self, asked: Mapping[str, str]) -> Choice:
        epoch, step = _whole(asked, "epoch", 0), _whole(asked, "step", 0)
        seed, size = _whole(asked, "seed", 0), _whole(asked, "size", 32)
        plan = Plan(
            Shuffle(seed, indices=self._indices),
            size,
            num_records=len(self._reader),
            rank=_whole(asked, "rank", 0),
            world=_whole(asked, "world", 1),
        )
        what = f"step {step:,} of epoch {epoch:,}, in batches of {size:,} (seed {seed})"
        return Choice(plan.indices(epoch, step), what)


_CHOICES: dict[str, Callable[[DataSet, Mapping[str, str]], Choice]] = {
    "sample": DataSet._by_sample,
    "condition": DataSet._by_condition,
    "key": DataSet._by_key,
    "step": DataSet._by_step,
}


def _whole(asked: Mapping[str, str], name: str, usual: int) -> int:
    text = asked.get(name, "").strip()
    try:
        return int(text) if text else usual
    except ValueError:
        raise ValueError(f"{name} is a whole number, not {text!r}.") from None


class _Counting:
    """The statistics of a set, made once by a thread."""

    def __init__(
        self, reader: Reader, indices: Any, features: dict[str, MessageFeature] | None
    ) -> None:
        self._reader = reader
        self._features: Any = features
        self._indices = indices
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._state: dict[str, Any] = {"done": 0, "records": len(reader)}
        self._is_stopped = False

    def state(self) -> dict[str, Any]:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tfrfast-view", daemon=True)
                self._thread.start()
        return self._state

    def stop(self) -> None:
        self._is_stopped = True
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            found = statistics(
                self._reader,
                features=self._features,
                records=self._indices,
                progress=False,
                advance=self._advance,
            )
            features = [
                plain_stats(each._replace(name=cut_name(each.name)), EXACT)
                for each in found.features[:_SHOWN_STATISTICS]
            ]
            left_out = len(found.features) - len(features)
            facts = {"records": found.num_records, "features": features, "left_out": left_out}
            self._state = facts
        except _StoppedError:
            pass
        except Exception as error:  # the page shows it
            self._state = {"error": str(error)}

    def _advance(self, done: int, total: int) -> None:
        if self._is_stopped:
            raise _StoppedError
        self._state = {"done": done, "records": total}


class _StoppedError(Exception):
    """The page's server has ended."""
