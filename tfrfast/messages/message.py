"""Fields of protobuf messages as features."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from tfrfast.messages.descriptors import (
    ENUM,
    GROUP,
    MESSAGE,
    DescribedField,
    DescribedMessage,
    Enum,
    read_set,
)

__all__ = ["Message", "MessageFeature", "PathField"]

# The column's type of each type of field.
_DTYPES = {
    1: "float64",
    2: "float32",
    3: "int64",
    4: "uint64",
    5: "int32",
    6: "uint64",
    7: "uint32",
    8: "bool",
    9: "bytes",
    12: "bytes",
    13: "uint32",
    14: "int32",
    15: "int32",
    16: "int64",
    17: "int32",
    18: "int64",
}

# The levels of all paths that features() takes by default, together: about a second of work. Fields
# of messages that fan out into others double with each level.
_MOST_LEVELS = 200_000

_Described = TypeVar("_Described")
_Content = Literal["values", "names", "presence"]


class PathField(NamedTuple):
    """A field on a path, as the arguments of a native MessageField."""

    number: int
    type: int
    repeated: bool = False
    checks_utf8: bool = False
    is_closed: bool = False
    names: tuple[tuple[int, str], ...] = ()
    oneof: tuple[PathField, ...] = ()
    entry: tuple[PathField, ...] = ()


@dataclass(frozen=True)
class MessageFeature:
    """A field of a protobuf message, as a feature. `Message` makes them."""

    message: str
    path: str
    content: _Content = "values"
    #: The type of the column's values.
    dtype: str = field(default="", kw_only=True)
    #: How many of the fields on the path are repeated: the number of levels of rows.
    levels: int = field(default=0, kw_only=True)
    #: The value where the field is missing, as bytes, if it is not zero or empty.
    default: bytes | None = field(default=None, kw_only=True, repr=False)
    fields: tuple[PathField, ...] = field(default=(), kw_only=True, repr=False)

    @property
    def is_string(self) -> bool:
        """True if values are strings or names, and not any bytes."""
        return self.dtype == "bytes" and self.fields[-1].type != 12

    @property
    def is_text(self) -> bool:
        """True if every value is known to be text in UTF-8."""
        return self.content == "names" or (self.content == "values" and self.fields[-1].checks_utf8)


class Message:
    """A protobuf message type, whose fields are features of records that hold such messages.

        scenario = tfr.Message("scenario.binpb", "waymo.open_dataset.Scenario")
        features = {"id": scenario["scenario_id"], "x": scenario["tracks.states.center_x"]}
        loader = tfr.Loader("scenarios/*", 8, features=features)

    `descriptor` is a FileDescriptorSet, as bytes or as the path of a file, as `protoc
    --include_imports --descriptor_set_out=FILE` and `buf build -o FILE` write it. Or it is a
    generated Python class, whose name is then the default of `name`. protobuf itself is not needed.

    `message[path]` is the field at a path of names with dots between. A path without repeated
    fields gives an array, or `Bytes`; a path with one gives `Ragged`; a path with more gives a
    `Ragged` of `Ragged`, with row splits at each level. A map is a repeated message with the fields
    `key` and `value`. A singular field that a record lacks has its default, which is zero or empty
    unless the descriptor says otherwise. An enum is int32; `message.names(path)` gives its names.
    `message.has(path)` says whether a singular field is there, and where a oneof's member is set.
    Only what features ask for is decoded.

    >>> event = tfr.Message.event()
    >>> event["summary.value.tag"].levels
    1
    """

    def __init__(self, descriptor: Any, name: str | None = None) -> None:
        self._descriptors, own = read_set(descriptor)
        if name is None:
            name = own
        messages = self._descriptors.messages
        if name is None:
            raise ValueError(f"Which message? The descriptor has {_listed(messages)}.")
        if not isinstance(name, str):
            raise TypeError(f"The name of a message is a str, not {type(name).__name__}.")
        if name not in messages:
            raise ValueError(
                f"There is no message {name!r}. The descriptor has {_listed(messages)}."
            )
        self.name: str = name
        # All members of a oneof, which each of them has.
        self._oneofs: dict[tuple[str, int], tuple[PathField, ...]] = {}

    @staticmethod
    def event() -> Message:
        """TensorBoard's `tensorflow.Event`, which every event file holds."""
        from tfrfast.messages.built_in import EVENT

        return Message(EVENT, "tensorflow.Event")

    @staticmethod
    def sequence_example() -> Message:
        """TensorFlow's `tensorflow.SequenceExample`, as the maps and lists that it is made of."""
        from tfrfast.messages.built_in import SEQUENCE_EXAMPLE

        return Message(SEQUENCE_EXAMPLE, "tensorflow.SequenceExample")

    def __getitem__(self, path: str) -> MessageFeature:
        """The values of a field."""
        return self._feature(path, "values")

    def names(self, path: str) -> MessageFeature:
        """The names of an enum's values, as byte strings. A number without a name is its digits."""
        return self._feature(path, "names")

    def has(self, path: str) -> MessageFeature:
        """Whether messages have a singular field, as a column of bool."""
        return self._feature(path, "presence")

    def features(
        self, paths: Sequence[str] | Mapping[str, str] | None = None
    ) -> dict[str, MessageFeature]:
        """Returns a dict of features for paths, by their paths or by other names.

        By default for all fields. A message inside a message of its own type is left out. Raises
        ValueError for a message with too many fields, which are then to be chosen.
        """
        if paths is None:
            return {path: self[path] for path in self._all_paths()}
        if isinstance(paths, str):
            raise TypeError(f"paths is a list of paths: [{paths!r}].")
        if not isinstance(paths, (Mapping, Sequence)):
            raise TypeError(
                f"paths is a list of paths, or a dict of them, not {type(paths).__name__}."
            )
        named = paths.items() if isinstance(paths, Mapping) else ((path, path) for path in paths)
        return {name: self[path] for name, path in named}

    def __repr__(self) -> str:
        return f"Message({self.name!r})"

    def _all_paths(self) -> list[str]:
        """Returns the path of each field that holds no message."""
        paths = []
        levels = 0
        for path, each in self._walk_all(self.name, "", ()):
            levels += path.count(".") + 1
            if levels > _MOST_LEVELS:
                raise ValueError(
                    f"{self.name} has too many fields to take all: a message counts again in each "
                    f"place where it can be. The count stopped at {path!r}. Choose fields by their "
                    "paths, as in features(['name', 'tracks.id'])."
                )
            if each.type not in (MESSAGE, GROUP):
                paths.append(path)
        return paths

    def _walk_all(
        self, name: str, prefix: str, above: tuple[str, ...]
    ) -> Iterator[tuple[str, DescribedField]]:
        """Yields each field and the fields below it, with their paths."""
        above = (*above, name)
        for each in self._message(name).fields.values():
            path = f"{prefix}{each.name}"
            yield path, each
            if each.type in (MESSAGE, GROUP) and each.type_name not in above:
                yield from self._walk_all(each.type_name, f"{path}.", above)

    def _message(self, name: str) -> DescribedMessage:
        return self._described(self._descriptors.messages, name)

    def _enum(self, name: str) -> Enum:
        return self._described(self._descriptors.enums, name)

    def _described(self, among: dict[str, _Described], name: str) -> _Described:
        if name not in among:
            raise ValueError(
                f"The descriptor does not describe {name!r}. Write it with all imports: protoc "
                "--include_imports."
            )
        return among[name]

    def _feature(self, path: str, content: _Content) -> MessageFeature:
        if not isinstance(path, str):
            raise TypeError(f"A path is a str, like 'summary.value.tag', not {path!r}.")
        name, levels = self.name, 0
        steps: list[PathField] = []
        *_, last = described = list(self._walk(path))
        for message, each in described:
            levels += each.is_repeated
            steps.append(self._path_field(message, each))
        field = last[1]
        if content == "presence":
            if not field.has_presence:
                raise ValueError(
                    f"{path!r} of {name}: protobuf does not record whether a message has this "
                    "field. It does for messages, members of a oneof, and optional fields."
                )
            return MessageFeature(
                name, path, content, dtype="bool", levels=levels, fields=tuple(steps)
            )
        if field.type in (MESSAGE, GROUP):
            inner = self._message(field.type_name).fields
            raise ValueError(
                f"{path!r} of {name} is a message {field.type_name}. Name a field of it: "
                f"{_listed([f'{path}.{each}' for each in inner])}."
            )
        if content == "names" and field.type != ENUM:
            raise ValueError(f"{path!r} of {name} is not an enum, so its values have no names.")
        dtype = "bytes" if content == "names" else _DTYPES[field.type]
        default = None
        if not field.is_repeated:
            try:
                default = self._default_of(field, content, dtype)
            except (ValueError, OverflowError, StopIteration) as error:
                raise ValueError(
                    f"{path!r} of {name}: the descriptor's default {field.default!r} is no value "
                    "of this field."
                ) from error
        return MessageFeature(
            name, path, content, dtype=dtype, levels=levels, default=default, fields=tuple(steps)
        )

    def _walk(self, path: str) -> Iterator[tuple[DescribedMessage, DescribedField]]:
        """Yields each field of a path, with its message."""
        message = self._message(self.name)
        names = path.split(".")
        for at, name in enumerate(names):
            if name not in message.fields:
                import difflib

                near = difflib.get_close_matches(name, message.fields, 1, 0.6)
                advice = f" Did you mean {near[0]!r}?" if near else ""
                raise ValueError(
                    f"{path!r} of {self.name}: {message.name} has no field {name!r}.{advice} "
                    f"It has {_listed(message.fields)}."
                )
            field = message.fields[name]
            yield message, field
            if at + 1 == len(names):
                return
            if field.type not in (MESSAGE, GROUP):
                raise ValueError(
                    f"{path!r} of {self.name}: {name!r} of {message.name} holds no message, so its "
                    "path ends there."
                )
            message = self._message(field.type_name)

    def _path_field(self, message: DescribedMessage, each: DescribedField) -> PathField:
        entry: tuple[PathField, ...] = ()
        if each.type == MESSAGE and (inner := self._message(each.type_name)).is_map_entry:
            if not {"key", "value"} <= inner.fields.keys():
                raise ValueError(f"The descriptor's {inner.name} has no key or no value.")
            entry = self._plain_field(inner.fields["key"]), self._plain_field(inner.fields["value"])
        oneof = () if each.oneof is None else self._oneof(message, each.oneof)
        return self._plain_field(each)._replace(oneof=oneof, entry=entry)

    def _plain_field(self, each: DescribedField) -> PathField:
        names: tuple[tuple[int, str], ...] = ()
        is_closed = False
        if each.type == ENUM:
            found = self._enum(each.type_name)
            first: dict[int, str] = {}
            for number, name in found.values:
                first.setdefault(number, name)
            names, is_closed = tuple(sorted(first.items())), found.is_closed
        return PathField(
            each.number, each.type, each.is_repeated, each.checks_utf8, is_closed, names
        )

    def _oneof(self, message: DescribedMessage, number: int) -> tuple[PathField, ...]:
        """Returns the members of a oneof. Strings that nobody asks for are not looked into."""
        key = message.name, number
        if key not in self._oneofs:
            self._oneofs[key] = tuple(
                self._plain_field(each)._replace(checks_utf8=False)
                for each in message.fields.values()
                if each.oneof == number
            )
        return self._oneofs[key]

    def _default_of(self, field: DescribedField, content: str, dtype: str) -> bytes | None:
        """Returns the default as bytes in the column. None if it is zero or empty."""
        text = field.default
        if field.type == ENUM:
            values = self._enum(field.type_name).values
            number = values[0][0]
            if text is not None:
                number = next(each for each, name in values if name == text.decode())
            if content == "names":
                return next(name for each, name in values if each == number).encode()
            return np.int32(number).tobytes() if number else None
        if text is None:
            return None
        if dtype == "bytes":
            unescaped: bytes = codecs.escape_decode(text)[0]
            return unescaped if field.type == 12 else text
        if dtype == "bool":
            return b"\1" if text == b"true" else None
        is_float = dtype.startswith("float")
        value: Any = float(text) if is_float else int(text)
        return np.array(value, dtype).tobytes()


def _listed(names: Any) -> str:
    shown = list(names)
    more = f" and {len(shown) - 20} more" if len(shown) > 20 else ""
    return ", ".join(map(repr, shown[:20])) + more
