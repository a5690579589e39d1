"""Random access to the steps of episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from tfrfast import _native
from tfrfast.base.arguments import seed_number
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.base.sizes import counted, format_bytes
from tfrfast.errors import CorruptRecordError, StaleIndexError
from tfrfast.example.encoding import encode_example
from tfrfast.features import Bounds, Features, Image, Scaled
from tfrfast.features.names import what_was_meant
from tfrfast.jobs.running import Workers
from tfrfast.keys.key_file import stamp_of
from tfrfast.loading.records import open_reader
from tfrfast.reader import Reader
from tfrfast.steps.axis import Along, encoded_axis
from tfrfast.steps.building import build_step_file, in_memory, step_path
from tfrfast.steps.choosing import Chosen, Only, choose, column_features
from tfrfast.steps.later import FARTHEST, Later
from tfrfast.steps.one_of import OneOf
from tfrfast.steps.window import Window
from tfrfast.storage.paths import Paths

__all__ = ["Episodes", "StepLocation", "Steps"]


class StepLocation(NamedTuple):
    """The place of a step."""

    shard: int
    """The number of the shard in `Steps.shards`."""
    record: int
    """The number of the episode's record in `Steps.records`."""
    step: int
    """The step's number in the episode."""


class Episodes(NamedTuple):
    """The episodes of some steps, one for each record."""

    first_steps: NDArray[np.int64]
    """The number of the first step of each episode."""
    lengths: NDArray[np.int64]
    """The number of steps of each episode."""


class Steps(Reader):
    """Any step of any episode by number, where each record is an episode.

        steps = tfr.Steps("data/train-*", along="steps/")
        example, batch = steps[12_345], steps[[9, 2, 7]]  # bytes, and a RecordBatch

    A step is a `tf.train.Example`. It holds the step's values of each feature along the axis, and
    all other features whole. Only these parts of the record are read, and their checksums are
    verified. Steps replace a Reader everywhere except where whole records are needed: `records` is
    the Reader of the episodes.

    A step file holds the places of the steps. The first `Steps` of some shards makes the file in
    one pass, and keeps it beside the indexes: see `build_steps`. With `index="memory"` nothing is
    kept.

    Args:
      source: a Reader of the episodes, or anything that Reader takes; `reader_options` are passed
        on to it.
      along: the features with values for each step: a prefix that ends in "/", a name, or a list of
        both. If no feature has just one value for each step, a dict maps names to the number of
        values of a step.
      windows: a `Window` for each feature whose values of several steps go into a step's Example,
        a `Later` for each further feature with the values of a later step, and a `OneOf` for each
        feature that is drawn from several.
      rename: new names of features along the axis, by their names in the records. `windows` and
        `absent` use the new names.
      absent: a substitute value, as for `encode_example`, for each such feature that some or all
        episodes lack.
      only: the steps to keep: their numbers, a slice or a mask. Or a function that takes a `Batch`
        and returns a mask of its rows, such as
        `lambda batch: abs(batch["steps/action"]).max(1) > 0.01`. `Steps` calls the function for all
        steps, once, and reads only the columns that the function uses. A pickle holds the result.
    """

    _makes_records = True

    @explains_arguments
    def __init__(
        self,
        source: Reader | Paths,
        *,
        along: Along,
        windows: Mapping[str, Window | Later | OneOf] | None = None,
        rename: Mapping[str, str] | None = None,
        absent: Mapping[str, Any] | None = None,
        only: Only | Chosen | None = None,
        **reader_options: Any,
    ) -> None:
        #: The Reader of the episodes.
        self.records: Reader = open_reader(source, reader_options)._frames()
        self._options = self.records._options
        self._paths, self._folder = self.records._paths, self.records._folder
        self._axis = encoded_axis(along)
        self._along = along
        self._windows = dict(windows or {})
        self._rename = dict(rename or {})
        self._absent = dict(absent or {})
        self._chosen: Chosen | None = None
        self._use(self._open())
        self._check_choices()
        if only is not None:
            self._chosen = choose(self, self._with_columns, only)
            self._use(_native.other_steps(self._core, chosen=self._chosen.bits))

    def _use(self, core: _native.Reader) -> None:
        self._core = core
        self._item = core.item

    def _open(self) -> _native.Reader:
        reader, use = self.records, self._options["index"]
        if use == "memory":
            for path in in_memory(reader, self._axis, list(self._rename)):
                return self._open_file(path)
        path = step_path(reader, self._axis)
        try:
            return self._open_file(path)
        except (FileNotFoundError, StaleIndexError, CorruptRecordError):
            if use == "require":
                raise
        build_step_file(reader, self._axis, path, Workers.of(reader), list(self._rename))
        return self._open_file(path)

    def _check_choices(self) -> None:
        """Raises ValueError if features of which one is drawn would not fit one column."""
        choices = {name: each for name, each in self._windows.items() if isinstance(each, OneOf)}
        columns = _native.step_facts(self._core)["columns"] if choices else []
        for name, choice in choices.items():
            kinds = sorted({kind for of, kind, *_ in columns if of == name})
            if len(kinds) > 1:
                raise ValueError(
                    f"{name!r} is one of {', '.join(choice.names)}, and they are of different "
                    f"kinds, {' and '.join(kinds)}. Choose among features of one kind."
                )
            windows = [self._windows.get(of) for of in choice.names]
            if len({each for each in windows if not isinstance(each, Later)}) > 1:
                raise ValueError(
                    f"{name!r} is one of {', '.join(choice.names)}, and they have different "
                    "windows. Give each the same window."
                )

    def _open_file(self, path: str) -> _native.Reader:
        windows = [
            (name, each.before, each.after, each.stride, each.pad or "")
            for name, each in self._windows.items()
            if isinstance(each, Window)
        ]
        laters = [
            (name, each.of, seed_number(each.seed), each.min_steps, _most(each))
            for name, each in self._windows.items()
            if isinstance(each, Later)
        ]
        choices = [
            (name, list(each.names), seed_number(each.seed))
            for name, each in self._windows.items()
            if isinstance(each, OneOf)
        ]
        stamp = stamp_of(self.records.shards)
        absent = {name: _entry_of(name, value) for name, value in self._absent.items()}
        try:
            core = _native.open_steps(
                self.records._core, path, stamp, windows, laters, choices, self._rename, absent
            )
        except ValueError as error:
            facts = _native.step_facts(
                _native.open_steps(self.records._core, path, stamp, [], [], [], {}, {})
            )
            raise self._explained(error, [name for name, *_ in facts["features"]]) from None
        facts = _native.step_facts(core)
        if facts["axis"] != self._axis:
            raise StaleIndexError(
                f"The step file {path!r} has the name of a file with other features along its "
                "steps. Build it again: tfr.build_steps(...).",
                path=path,
            )
        if facts["left_out"]:
            self._meet_damage(np.flatnonzero(np.diff(_native.first_steps(core)) == 0))
        return core

    def _explained(self, error: ValueError, in_files: Sequence[str]) -> ValueError:
        """Returns the same error. If a name does not exist, adds the most similar names."""
        known = {self._rename.get(name, name) for name in in_files}
        added = {name for name, each in self._windows.items() if not isinstance(each, Window)}
        asked: list[str] = [name for name in self._rename if name not in in_files]
        for name, each in self._windows.items():
            if isinstance(each, Later):
                asked.append(each.of)
            elif isinstance(each, OneOf):
                asked += [of for of in each.names if of not in added]
            else:
                asked.append(name)
        for name in asked:
            if name not in known:
                return ValueError(f"{error}{what_was_meant(name, known, 'The steps')}")
        return error

    def _meet_damage(self, records: NDArray[np.int64]) -> None:
        """Reads records without steps, so that `skipped` lists the damaged among them."""
        size = self.records._records_within(16 << 20)
        for at in range(0, len(records), size):
            self.records.read(records[at : at + size])

    def _with_columns(self, names: Sequence[str]) -> Steps:
        """Returns the same steps with only these features. Other parts of records are not read."""
        made = Steps.__new__(Steps)  # a copy() would open the files again
        vars(made).update(vars(self))
        made._use(_native.other_steps(self._core, columns=names))
        return made

    def _known_features(self) -> Features:
        return column_features(self)

    def _without_windows(self) -> Steps:
        """Returns the same steps, each with its own values in place of windows."""
        made = Steps.__new__(Steps)
        vars(made).update(vars(self))
        made._windows = {}
        made._use(_native.other_steps(self._core, has_windows=False))
        return made

    def _is_drawn(self, feature: str) -> bool:
        return isinstance(self._windows.get(feature), OneOf)

    def _fitted(self, features: Features) -> Features:
        fitted = dict(features)
        for name, spec in features.items():
            window = self._windows.get(name)
            if isinstance(window, OneOf):
                window = self._windows.get(window.names[0])
            if not isinstance(window, Window):
                continue
            if isinstance(spec, Image) and spec.frames is None:
                fitted[name] = replace(spec, frames=window.before + window.after + 1)
            elif isinstance(spec, Scaled | Bounds) and spec.pad is None:
                fitted[name] = replace(spec, pad="zeros" if window.pad == "zeros" else "repeat")
        return fitted

    @property
    def only(self) -> NDArray[np.int64] | None:
        """The numbers of the chosen steps among all steps; None without `only`."""
        if self._chosen is None:
            return None
        bits = np.frombuffer(self._chosen.bits, np.uint8)
        return np.flatnonzero(np.unpackbits(bits, bitorder="little"))

    def locate(self, i: int) -> StepLocation:  # type: ignore[override]
        """Returns the place of step `i`. Reads only the step file."""
        record, step = _native.step_place(self._core, i)
        return StepLocation(self.records.locate(record).shard, record, step)

    @cached_property
    def episodes(self) -> Episodes:
        """Returns the first step and the length of each episode."""
        first_steps = _native.first_steps(self._core)
        return Episodes(first_steps[:-1], np.diff(first_steps))

    def _found_features(self) -> str:
        """Returns the features of a step, and the size of the step file."""
        facts = _native.step_facts(self._core)
        bytes_a_step = facts["num_bytes"] / max(facts["num_steps"], 1)
        lines = [
            f"{counted(len(self), 'steps')} of {counted(facts['num_records'], 'episodes')}",
            f"step file: {format_bytes(facts['num_bytes'])}, {bytes_a_step:.1f} bytes a step, "
            f"{facts['path']}",
        ]
        if any(shard.compression for shard in self.shards):
            lines.append("compressed shards: up to the whole episode is inflated for a step")
        for name, kind, values, width, run_steps in facts["features"]:
            size = f"{width} bytes" if width else "of different sizes"
            lines.append(
                f"{name}: {values or 'any number of'} {kind} a step, {size}, "
                f"a checksum for {run_steps}"
            )
        return "\n".join(lines)

    @property
    def lengths(self) -> NoReturn:
        raise TypeError("The lengths of steps are not known: give lengths=.")

    def by_key(self, feature: str, *, folder: object = None) -> NoReturn:
        raise TypeError("Records are found by key, not steps: use `steps.records.by_key`.")

    def _described(self) -> bytes:
        if self._options["index"] == "memory":
            raise ValueError(
                'Steps(index="memory") keep no step file that TensorFlow could open. Name a folder '
                "for it, index_folder=."
            )
        return super()._described()

    def _records_within(self, num_bytes: int) -> int:
        mean = sum(shard.num_bytes for shard in self.shards) // max(len(self), 1)
        return max(1, min(1 << 16, num_bytes // max(mean, 1)))

    def close(self) -> None:
        """Closes all files. Using the reader afterwards is an error."""
        super().close()
        self.records.close()

    def __reduce__(self) -> tuple[object, ...]:
        arguments = {
            "along": self._along,
            "windows": self._windows,
            "rename": self._rename,
            "absent": self._absent,
            "only": self._chosen,
        }
        return _open, (self.records, arguments)

    def __repr__(self) -> str:
        if self.closed:
            return "Steps(closed)"
        return f"Steps({len(self.episodes.lengths)} episodes, {len(self)} steps)"

    def _title(self) -> str:
        episodes = counted(len(self.episodes.lengths), "episodes")
        return f"Steps: {counted(len(self), 'steps')} of {episodes}"


def _open(records: Reader, arguments: dict[str, Any]) -> Steps:
    return Steps(records, **arguments)


def _most(later: Later) -> int:
    return FARTHEST if later.max_steps is None else later.max_steps


def _entry_of(name: str, value: Any) -> bytes:
    """Returns the map entry of an Example with this feature alone."""
    if value is None:
        raise TypeError(f"absent[{name!r}] is None. Give a value, as for encode_example.")
    content = encode_example({name: value})
    for _ in range(2):  # the map, then its entry: a tag of one byte, and a length
        at = 1
        while content[at] >= 0x80:
            at += 1
        content = content[at + 1 :]
    return content
