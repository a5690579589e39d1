"""Random protobuf descriptors, messages, damage, and what protobuf itself reads of them."""

from __future__ import annotations

import random
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from wire_examples import varint

FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = [n for n in range(1, 19) if n not in (FIELD.TYPE_GROUP, FIELD.TYPE_MESSAGE)]
_KEYS = [3, 4, 5, 6, 7, 8, 9, 13, 15, 16, 17, 18]
_STRINGS = (FIELD.TYPE_STRING, FIELD.TYPE_BYTES)
_MESSAGES = (FIELD.TYPE_GROUP, FIELD.TYPE_MESSAGE)
_NUMBERS = [*range(1, 20), 63, 64, 2047, 2048, 100_000, 2**29 - 1]


class Schema:
    """A random file with a message `t.M0`."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t")
        self.is_edition = rng.random() < 0.4
        self.is_proto3 = not self.is_edition and rng.random() < 0.5
        self.is_delimited = self.is_edition and rng.random() < 0.7
        self.checks_utf8 = self.is_proto3 or self.is_edition
        if self.is_proto3:
            self.file.syntax = "proto3"
        elif self.is_edition:
            self.file.syntax, self.file.edition = "editions", descriptor_pb2.EDITION_2023
            self.file.options.features.enum_type = descriptor_pb2.FeatureSet.CLOSED
            if self.is_delimited:
                self.file.options.features.message_encoding = descriptor_pb2.FeatureSet.DELIMITED
        enum = self.file.enum_type.add(name="E")
        numbers = [0, 1, 2, -1, 1000, -(2**31), 2**31 - 1]
        if not self.is_proto3:
            rng.shuffle(numbers)
        for number in numbers[: rng.randint(1, 7)]:
            enum.value.add(name=f"E{len(enum.value)}", number=number)
        count = rng.randint(1, 5)
        for number in range(count):
            self._message(number, count)
        self.set = descriptor_pb2.FileDescriptorSet(file=[self.file]).SerializeToString()
        self.type = type_of(self.file)

    def _message(self, number: int, count: int) -> None:
        rng = self.rng
        message = self.file.message_type.add(name=f"M{number}")
        numbers = rng.sample(_NUMBERS, rng.randint(1, 9))
        for at, field_number in enumerate(numbers):
            field = message.field.add(name=f"f{at}", number=field_number, label=1)
            inner = range(number + 1, count)
            draw = rng.random()
            if draw < 0.4 and inner:
                field.type = FIELD.TYPE_MESSAGE
                field.type_name = f".t.M{rng.choice(inner)}"
                if not self.checks_utf8 and rng.random() < 0.3:
                    self._group(message, field)
            else:
                self._scalar(field)
            if rng.random() < 0.35:
                field.label = 3
                is_packable = field.type not in (*_STRINGS, *_MESSAGES)
                if is_packable and not self.is_edition and rng.random() < 0.5:
                    field.options.packed = rng.random() < 0.5
            elif rng.random() < 0.25:
                self._map(message, field)
            elif not self.is_proto3 and rng.random() < 0.5:
                self._default(field)
        plain = [each for each in message.field if each.label == 1]
        if len(plain) > 1 and rng.random() < 0.5:
            message.oneof_decl.add(name="one")
            for each in plain[: rng.randint(2, len(plain))]:
                each.oneof_index = 0
        elif plain and self.is_proto3 and plain[0].type not in _MESSAGES:
            message.oneof_decl.add(name="_own")
            plain[0].oneof_index, plain[0].proto3_optional = 0, True

    def _group(self, message: Any, field: Any) -> None:
        group = message.nested_type.add(name=f"G{field.name}")
        for number in range(1, 4):
            self._scalar(group.field.add(name=f"g{number}", number=number, label=1))
        field.type, field.type_name = FIELD.TYPE_GROUP, f".t.{message.name}.{group.name}"
        field.name = group.name.lower()

    def _scalar(self, field: Any) -> None:
        field.type = self.rng.choice(_SCALARS)
        if field.type == FIELD.TYPE_ENUM:
            field.type_name = ".t.E"

    def _map(self, message: Any, field: Any) -> None:
        enum = self.file.enum_type[0]
        if field.type == FIELD.TYPE_GROUP or (
            field.type == FIELD.TYPE_ENUM and enum.value[0].number != 0
        ):
            return
        name = f"{field.name.capitalize()}Entry"
        entry = message.nested_type.add(name=name)
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=1, type=self.rng.choice(_KEYS))
        entry.field.add(
            name="value", number=2, label=1, type=field.type, type_name=field.type_name or None
        )
        field.type, field.label = FIELD.TYPE_MESSAGE, 3
        field.type_name = f".t.{message.name}.{name}"

    def _default(self, field: Any) -> None:
        if field.type == FIELD.TYPE_ENUM:
            field.default_value = self.rng.choice(self.file.enum_type[0].value).name
        elif field.type == FIELD.TYPE_BYTES:
            field.default_value = '\\001\\xff\\n\\"a'
        elif field.type == FIELD.TYPE_STRING:
            field.default_value = 'a "\\n" é'
        elif field.type == FIELD.TYPE_BOOL:
            field.default_value = self.rng.choice(["true", "false"])
        elif field.type in (FIELD.TYPE_DOUBLE, FIELD.TYPE_FLOAT):
            field.default_value = self.rng.choice(["1.5", "-inf", "nan", "1e30"])
        elif field.type not in _MESSAGES:
            field.default_value = "7"

    def message(self) -> bytes:
        """A valid message, perhaps of several parts that merge."""
        parts = []
        for _ in range(self.rng.choice([1, 1, 2])):
            made = self.type()
            self._fill(made)
            parts.append(made.SerializeToString())
            for field in made.DESCRIPTOR.fields:
                if field.type == FIELD.TYPE_ENUM and self.rng.random() < 0.2:  # without a name
                    parts.append(varint(field.number << 3) + varint(77))
        return b"".join(parts)

    def _fill(self, message: Any) -> None:
        rng = self.rng
        for field in message.DESCRIPTOR.fields:
            if rng.random() < 0.3:
                continue
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                value = field.message_type.fields_by_name["value"]
                for _ in range(rng.randint(0, 3)):
                    key = self._value(field.message_type.fields_by_name["key"])
                    entries = getattr(message, field.name)
                    if value.message_type is not None:
                        self._fill(entries[key])
                    else:
                        entries[key] = self._value(value)
            elif field.message_type is not None:
                inner = getattr(message, field.name)
                if is_repeated(field):
                    for _ in range(rng.randint(0, 3)):
                        self._fill(inner.add())
                else:
                    inner.SetInParent()
                    self._fill(inner)
            elif is_repeated(field):
                many = 70 if rng.random() < 0.1 else 4
                values = [self._value(field) for _ in range(rng.randint(0, many))]
                getattr(message, field.name).extend(values)
            else:
                setattr(message, field.name, self._value(field))

    def _value(self, field: Any) -> Any:
        rng = self.rng
        kind = field.type
        if kind == FIELD.TYPE_STRING:
            return "".join(rng.choices("ab é\U0001f600\0", k=rng.randint(0, 6)))
        if kind == FIELD.TYPE_BYTES:
            return rng.randbytes(rng.randint(0, 9))
        if kind == FIELD.TYPE_BOOL:
            return rng.random() < 0.5
        if kind == FIELD.TYPE_ENUM:
            return rng.choice(field.enum_type.values).number
        if kind in (FIELD.TYPE_DOUBLE, FIELD.TYPE_FLOAT):
            return rng.choice([0.0, -0.0, 1.5, float("inf"), float("nan"), -1e30])
        bits = 64 if kind in (3, 4, 6, 16, 18) else 32
        unsigned = kind in (4, 6, 7, 13)
        low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return rng.choice([0, 1, low, high, rng.randint(low, high), rng.randint(0, 300)])

    def hostile(self) -> bytes:
        """Bytes that are almost a message, or that no writer writes."""
        rng = self.rng
        data = bytearray(self.message() if rng.random() < 0.6 else self._wire(0, "t.M0"))
        for _ in range(rng.choice([0, 1, 1, 2, 5])):
            at = rng.randrange(len(data) + 1)
            draw = rng.random()
            if draw < 0.35 and at < len(data):
                data[at] = rng.choice([0, 0x7F, 0x80, 0xFF, rng.randrange(256), data[at] ^ 1])
            elif draw < 0.5:
                del data[at : at + rng.randint(1, 4)]
            elif draw < 0.65:
                data[at:at] = data[at : at + rng.randint(1, 12)]
            elif draw < 0.8:
                data[at:at] = self._wire(3, "t.M0")
            elif draw < 0.85:
                del data[at:]
            elif draw < 0.9:
                number = rng.choice([1, 5, 70])
                depth = rng.choice([2, 99, 100, 101, 150])
                opened, closed = varint(number << 3 | 3), varint(number << 3 | 4)
                data[at:at] = opened * depth + closed * (depth - rng.choice([0, 0, 0, 1]))
            else:
                data[at:at] = rng.randbytes(rng.randint(1, 3))
        return bytes(data)

    def _wire(self, depth: int, name: str) -> bytes:
        """Fields of a message with any wire types, in any order, many times each."""
        rng = self.rng
        fields = self.type.DESCRIPTOR.file.pool.FindMessageTypeByName(name).fields
        out = b""
        for _ in range(rng.randint(0, 6)):
            start = len(out)
            field = rng.choice(fields) if fields and rng.random() < 0.9 else None
            number = field.number if field else rng.choice([0, *_NUMBERS])
            inner = field.message_type.full_name if field and field.message_type else "t.M0"
            kind = rng.choice([0, 1, 2, 2, 3, 5, 6 if rng.random() < 0.1 else 0])
            if field and rng.random() < 0.8:
                kind = {1: 1, 2: 5, 6: 1, 7: 5, 9: 2, 10: 3, 11: 2, 12: 2, 15: 5, 16: 1}.get(
                    field.type, rng.choice([0, 0, 2])
                )
            tag = varint(number << 3 | kind)
            if rng.random() < 0.03:
                tag = tag[:-1] + bytes([tag[-1] | 0x80, 0x80, 0])
            out += tag
            if kind == 0:
                out += self._any_varint()
            elif kind in (1, 5):
                out += rng.randbytes(8 if kind == 1 else 4)
            elif kind == 2:
                body = self._body(field, depth, inner)
                size = len(body) + (rng.choice([-1, 1, 2**31]) if rng.random() < 0.02 else 0)
                out += varint(max(size, 0)) + body
            elif kind == 3:
                body = self._wire(depth + 1, inner) if depth < 3 else b""
                end = number + (rng.random() < 0.02)
                out += body + varint(end << 3 | 4)
            if rng.random() < 0.2:  # also the same entry of a map, on any level
                out += out[start:]
        return out

    def _body(self, field: Any, depth: int, inner: str) -> bytes:
        rng = self.rng
        if field is not None and field.message_type is not None:
            return self._wire(depth + 1, inner) if depth < 3 else b""
        if field is not None and field.type in _STRINGS:
            return rng.choice([b"", b"ok", "é".encode(), b"\xff" if rng.random() < 0.1 else b"x"])
        if rng.random() < 0.5:
            return b"".join(self._any_varint() for _ in range(rng.choice([0, 1, 3, 40])))
        return rng.randbytes(rng.choice([0, 4, 8, 16, 24]))

    def _any_varint(self) -> bytes:
        rng = self.rng
        value = rng.choice([0, 1, 2, 127, 128, 1000, 2**31, 2**32 - 1, 2**63, 2**64 - 1])
        if rng.random() < 0.05:
            return varint(value)[:-1] + b"\xff" * rng.randint(1, 8) + rng.choice([b"\0", b"\x7f"])
        return varint(value)

    def pruned(self, wanted: list[tuple[str, str]]) -> Any:
        """Returns the class of `t.M0` with the fields of these paths alone. Other members of their
        oneofs, and the unasked values of maps, remain as fields that are not looked into.
        """
        file = descriptor_pb2.FileDescriptorProto(name="p.proto", package="t")
        if self.file.syntax:
            file.syntax = self.file.syntax
        if self.is_edition:
            file.edition = self.file.edition
        file.options.CopyFrom(self.file.options)
        file.enum_type.add().CopyFrom(self.file.enum_type[0])
        self._prune(file.message_type.add(name="M0"), "t.M0", "", {path for path, _ in wanted})
        return type_of(file)

    def _prune(self, made: Any, name: str, prefix: str, wanted: set[str]) -> None:
        """Adds the fields of the message `name` that paths with this prefix lead to. Each message
        gets a type of its own, because another path to the same message may want other fields.
        """
        described = self._described(name)
        is_entry = made.options.map_entry = described.options.map_entry
        asked = {
            f.name
            for f in described.field
            if any(f"{path}.".startswith(f"{prefix}{f.name}.") for path in wanted)
        }
        oneofs = {
            f.oneof_index for f in described.field if f.name in asked and f.HasField("oneof_index")
        }
        used = sorted(oneofs)
        for each in used:
            made.oneof_decl.add(name=described.oneof_decl[each].name)
        for field in described.field:
            is_rival = field.HasField("oneof_index") and field.oneof_index in oneofs
            if field.name not in asked and not is_rival and not is_entry:
                continue
            kept = made.field.add()
            kept.CopyFrom(field)
            if field.HasField("oneof_index"):
                kept.oneof_index = used.index(field.oneof_index)
            is_group = field.type == FIELD.TYPE_GROUP or (
                self.is_delimited and field.type == FIELD.TYPE_MESSAGE and not is_entry
            )
            if (field.name in asked and field.type in _MESSAGES) or is_group:
                full = field.type_name.lstrip(".")
                is_own = full.startswith(f"{name}.")  # the entries of a map, or a group
                suffix = full.rpartition(".")[2] if is_own else f"T{field.name}"
                inner = made.nested_type.add(name=suffix)
                kept.type_name = f"{suffix}"
                self._prune(inner, field.type_name.lstrip("."), f"{prefix}{field.name}.", wanted)
            elif field.type == FIELD.TYPE_MESSAGE:
                kept.type = FIELD.TYPE_BYTES
                kept.ClearField("type_name")
            elif (
                field.type == FIELD.TYPE_STRING
                and not is_entry
                and (field.name not in asked or not self.checks_utf8)
            ):
                kept.type = FIELD.TYPE_BYTES
                if field.HasField("default_value"):
                    data = field.default_value.encode()
                    kept.default_value = "".join(f"\\{byte:03o}" for byte in data)

    def _described(self, name: str) -> Any:
        return next(message for message, full in _all_messages(self.file) if full == name)


def is_repeated(field: Any) -> bool:
    """Earlier versions of protobuf have a label in place of a property."""
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == 3)


def type_of(file: Any) -> Any:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.M0"))


def _all_messages(file: Any) -> list[tuple[Any, str]]:
    found = []
    for message in file.message_type:
        found.append((message, f"t.{message.name}"))
        found += [(each, f"t.{message.name}.{each.name}") for each in message.nested_type]
    return found


def read_by_protobuf(message: Any, wanted: list[tuple[str, str]]) -> Any:
    """Returns a tree of the wanted fields, with the entries of maps in the order of their keys."""
    row = {(path, content): _read(message, path.split("."), content) for path, content in wanted}
    return tree_of(message.DESCRIPTOR, row)


def tree_of(descriptor: Any, row: dict[tuple[str, str], Any]) -> Any:
    """Returns the same tree for the row of each wanted column."""
    tree: dict[str, Any] = {}
    for (path, content), value in row.items():
        _put(tree, descriptor, path.split("."), value, content)
    return _sorted(tree)


def _put(tree: Any, descriptor: Any, names: list[str], value: Any, content: str) -> None:
    name, rest = names[0], names[1:]
    field = descriptor.fields_by_name[name]
    if not rest:
        tree[f"{name} {content}"] = value
    elif is_repeated(field):
        for each, inner in zip(tree.setdefault(name, [{} for _ in value]), value, strict=True):
            _put(each, field.message_type, rest, inner, content)
    else:
        _put(tree.setdefault(name, {}), field.message_type, rest, value, content)


def _sorted(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: _sorted(value) for name, value in sorted(tree.items())}
    if isinstance(tree, list):
        rows = [_sorted(each) for each in tree]
        if rows and isinstance(rows[0], dict) and "key values" in rows[0]:
            rows.sort(key=lambda row: row["key values"])
        return rows
    return tree


def _read(message: Any, names: list[str], content: str) -> Any:
    name, rest = names[0], names[1:]
    field = message.DESCRIPTOR.fields_by_name[name]
    if not rest and content == "presence":
        return message.HasField(name)
    value = getattr(message, name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name[rest[0]]
        if rest[0] == "key":
            return [_plain(entry, key, content) for key in value]
        if len(rest) == 1:
            return [_plain(entry, value[key], content) for key in value]
        return [_read(value[key], rest[1:], content) for key in value]
    if is_repeated(field):
        return [
            _read(each, rest, content) if rest else _plain(field, each, content) for each in value
        ]
    return _read(value, rest, content) if rest else _plain(field, value, content)


def _plain(field: Any, value: Any, content: str) -> Any:
    if content == "names":
        named = field.enum_type.values_by_number.get(value)
        return (str(value) if named is None else named.name).encode()
    return value.encode() if isinstance(value, str) else value
