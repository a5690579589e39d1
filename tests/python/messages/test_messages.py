"""Messages that are not Examples as features: what can be asked for, and what is refused."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tfrfast as tfr

pytest.importorskip("google.protobuf")
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from changing_bytes import changing
from random_messages import Schema
from scenarios import scenarios
from wire_examples import varint

FIELD = descriptor_pb2.FieldDescriptorProto


def features_of(message: tfr.Message) -> dict[str, Any]:
    return {
        "id": message["id"],
        "times": message["times"],
        "x": message["tracks.states.x"],
        "valid": message["tracks.states.valid"],
        "kind": message.names("tracks.kind"),
        "later": message.has("after"),
    }


@pytest.fixture(scope="module")
def shards(tmp_path_factory: Any, scenario_class: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("scenarios")
    for shard in range(2):
        with tfr.Writer(folder / f"s-{shard}") as writer:
            for record in scenarios(scenario_class, 20)[shard::2]:
                writer.write(record)
    return folder


def test_levels_of_repeated_fields_become_levels_of_rows(
    described: bytes, scenario_class: Any
) -> None:
    message = tfr.Message(described, "drive.Scenario")
    batch = tfr.parse_example(scenarios(scenario_class, 4), features_of(message))
    assert batch["id"].tolist() == [b"s0", b"s1", b"s2", b"s3"]
    assert batch["times"].tolist() == [[], [0.5], [0.5, 0.5], [0.5, 0.5, 0.5]]
    assert batch["x"].tolist() == [[], [[1.0]], [[], [2.0]], []]
    assert batch["valid"].tolist() == [[], [[True]], [[], [True]], []]
    assert batch["kind"].tolist() == [[], [b"UNSET"], [b"UNSET", b"CAR"], []]
    assert batch["later"].tolist() == [False] * 4
    assert batch["x"].values.values.dtype == np.float64


def test_a_loader_delivers_the_rows_that_parsing_gives(described: bytes, shards: Path) -> None:
    features = features_of(tfr.Message(described, "drive.Scenario"))
    reader = tfr.Reader(shards / "*")
    with reader:
        loader = tfr.Loader(reader, 7, features=features, seed=3)
        for batch in loader:
            parsed = tfr.parse_example(reader.read(batch.indices), features)
            for name in features:
                assert batch[name].tolist() == parsed[name].tolist()
        copy = pickle.loads(pickle.dumps(loader))
        assert sum(len(batch.indices) for batch in copy) == 20


def test_a_descriptor_may_be_bytes_a_file_a_class_or_a_module(
    described: bytes, scenario_class: Any, tmp_path: Path
) -> None:
    path = tmp_path / "s.binpb"
    path.write_bytes(described)
    named = [tfr.Message(each, "drive.Scenario") for each in (described, path, str(path))]
    given = [*named, tfr.Message(scenario_class)]
    paths = ["id", "times", "tracks.id", "tracks.kind", "tracks.states.x", "tracks.states.valid"]
    for message in given:
        assert sorted(message.features()) == sorted(paths)  # without the Scenario in a Scenario
        assert message.features(["id"]) == {"id": message["id"]}
        assert message.features({"name": "id"}) == {"name": given[0]["id"]}


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda m: m["track.id"], "has no field 'track'. Did you mean 'tracks'?"),
        (lambda m: m["tracks"], "is a message drive.Track. Name a field of it: 'tracks.id'"),
        (lambda m: m["id.x"], "holds no message"),
        (lambda m: m.names("id"), "is not an enum"),
        (lambda m: m.has("times"), "does not record whether"),
        (lambda m: m[7], "A path is a str"),
        (lambda m: m.features("id"), "paths is a list of paths: \\['id'\\]"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(described: bytes, ask: Any, error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        ask(tfr.Message(described, "drive.Scenario"))


@pytest.mark.parametrize("leaf", [FIELD.TYPE_INT32, FIELD.TYPE_MESSAGE])
def test_all_fields_of_messages_that_fan_out_are_refused_soon(leaf: Any) -> None:
    file = descriptor_pb2.FileDescriptorProto(name="f.proto")
    for level in range(40):
        made = file.message_type.add(name=f"M{level}")
        for number in (1, 2):
            field = made.field.add(name=f"f{number}", number=number, label=1)
            field.type, field.type_name = FIELD.TYPE_MESSAGE, f".M{level + 1}"
    last = file.message_type.add(name="M40").field.add(name="x", number=1, label=1, type=leaf)
    last.type_name = ".M40" if leaf == FIELD.TYPE_MESSAGE else ""
    descriptor = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    with pytest.raises(ValueError, match=r"too many fields .* Choose fields by their paths"):
        tfr.Message(descriptor, "M0").features()
    assert len(tfr.Message(descriptor, "M30").features()) == (leaf == FIELD.TYPE_INT32) << 10


@pytest.mark.parametrize(
    ("descriptor", "name", "error"),
    [
        (b"\xff\xff", None, "is no FileDescriptorSet"),
        (b"", None, "describes no messages"),
        (7, None, "takes a FileDescriptorSet"),
        (None, None, "Which message"),
        (None, "drive.Car", "There is no message 'drive.Car'. The descriptor has 'drive.State'"),
    ],
)
def test_a_wrong_descriptor_is_refused(
    described: bytes, descriptor: Any, name: str | None, error: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        tfr.Message(described if descriptor is None else descriptor, name)


def test_damaged_descriptors_are_refused_in_sentences() -> None:
    """A ValueError names the descriptor, the field or the path, whatever its bytes are."""
    rng = random.Random(3)
    nested = b"\x0a\x01M"
    for _ in range(3000):
        nested = b"\x0a\x01M\x1a" + varint(len(nested)) + nested
    file = b"\x22" + varint(len(nested)) + nested
    descriptors = [b"\x0a" + varint(len(file)) + file]
    for _ in range(1500):
        if rng.random() < 0.02 or len(descriptors) == 1:
            made = bytearray(Schema(rng).set)
        data = bytearray(made)
        for _ in range(rng.choice([1, 1, 2, 4])):
            at = rng.randrange(len(data))
            data[at] = rng.choice([0, 0x7F, 0xFF, data[at] ^ 1, data[at] ^ 3, rng.randrange(256)])
        descriptors.append(bytes(data))
    refused = set()
    for each in descriptors:
        try:
            tfr.parse_example([b""], tfr.Message(each, "t.M0").features())
        except ValueError as error:
            assert str(error).endswith((".", "?")), each
            refused.add(str(error)[:20])
    assert len(refused) > 5


def test_a_descriptor_lacks_its_imports_or_has_a_wrong_default() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="i.proto")
    file.enum_type.add(name="E").value.add(name="ZERO", number=0)
    made = file.message_type.add(name="M")
    made.field.add(name="far", number=1, label=1, type=FIELD.TYPE_ENUM, type_name=".x.E")
    for number, (kind, value) in enumerate(
        {FIELD.TYPE_ENUM: "ONE", FIELD.TYPE_INT32: "9" * 11, FIELD.TYPE_BYTES: "\\"}.items(), 2
    ):
        made.field.add(name=f"f{number}", number=number, label=1, type=kind, default_value=value)
    made.field[1].type_name = ".E"
    data = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    message = tfr.Message(data, "M")
    with pytest.raises(ValueError, match="does not describe 'x.E'. Write it with all imports"):
        message["far"]
    for number in (2, 3, 4):
        with pytest.raises(ValueError, match=f"'f{number}' of M: the descriptor's default"):
            message[f"f{number}"]


def test_lengths_are_not_counted_in_messages(described: bytes, shards: Path) -> None:
    features = features_of(tfr.Message(described, "drive.Scenario"))
    with pytest.raises(ValueError, match="counted in Examples alone"):
        tfr.Loader(shards / "*", tfr.ByTokens(9, "times"), features=features)


def test_a_record_of_another_message_is_an_error_that_names_its_byte(
    described: bytes, scenario_class: Any
) -> None:
    message = tfr.Message(described, "drive.Scenario")
    records = [*scenarios(scenario_class, 3), b"\x12\x05\x08"]
    with pytest.raises(tfr.FeatureError, match="the field at byte 0 does not fit a message drive"):
        tfr.parse_example(records, {"x": message["tracks.states.x"]})
    # Only what is asked for is read.
    skipped = tfr.parse_example([b"\x12\x02\xff\xff"], {"id": message["id"]})
    assert skipped["id"].tolist() == [b""]


def test_features_of_two_messages_do_not_mix(described: bytes) -> None:
    message = tfr.Message(described, "drive.Scenario")
    for other in (tfr.FixedLen((), "int64"), tfr.Message(described, "drive.Track")["id"]):
        with pytest.raises(ValueError, match="do not mix|hold one message|two ways"):
            tfr.parse_example([b""], {"a": message["id"], "b": other})
        with pytest.raises(ValueError, match="do not mix|hold one message|two ways"):
            tfr.parse_example([b""], {"b": other, "a": message["id"]})


def test_an_edition_says_how_its_fields_are_read() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="e.proto", package="e", syntax="editions")
    file.edition = descriptor_pb2.EDITION_2023
    file.options.features.field_presence = descriptor_pb2.FeatureSet.IMPLICIT
    inner = file.message_type.add(name="In")
    inner.field.add(name="a", number=1, label=1, type=FIELD.TYPE_INT32)
    outer = file.message_type.add(name="Out")
    grouped = outer.field.add(name="g", number=1, label=1, type=FIELD.TYPE_MESSAGE)
    grouped.type_name = ".e.In"
    # A map stays as it is.
    file.options.features.message_encoding = descriptor_pb2.FeatureSet.DELIMITED
    entry = outer.nested_type.add(name="MEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=1, type=FIELD.TYPE_INT32)
    entry.field.add(name="value", number=2, label=1, type=FIELD.TYPE_MESSAGE, type_name=".e.In")
    outer.field.add(name="m", number=3, label=3, type=FIELD.TYPE_MESSAGE, type_name=".e.Out.MEntry")
    text = outer.field.add(name="t", number=2, label=1, type=FIELD.TYPE_STRING)
    text.options.features.utf8_validation = descriptor_pb2.FeatureSet.NONE
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("e.Out"))(t="ab")
    made.g.a = 7
    made.m[3].a = 9
    message = tfr.Message(
        descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString(), "e.Out"
    )
    record = made.SerializeToString().replace(b"ab", b"a\xff")
    batch = tfr.parse_example([record], message.features(["g.a", "t", "m.key", "m.value.a"]))
    assert batch["g.a"].tolist() == [7]
    assert (batch["m.key"].tolist(), batch["m.value.a"].tolist()) == ([[3]], [[9]])
    assert batch["t"].tolist() == [b"a\xff"]
    with pytest.raises(ValueError, match="does not record"):
        message.has("t")


def test_a_number_without_a_name_is_no_member_of_a_oneof() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="o.proto")
    file.enum_type.add(name="E").value.add(name="ZERO", number=0)
    file.message_type.add(name="M").oneof_decl.add(name="o")
    member = file.message_type[0].field.add
    member(name="a", number=1, label=1, type=FIELD.TYPE_INT32, oneof_index=0)
    member(name="e", number=2, label=1, type=FIELD.TYPE_ENUM, type_name=".E", oneof_index=0)
    message = tfr.Message(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString(), "M")
    for paths in (["a"], ["a", "e"], ["e", "a"]):
        batch = tfr.parse_example([b"\x08\x05\x10\x63", b"\x08\x05\x10\0"], message.features(paths))
        assert batch["a"].tolist() == [5, 0]


def map_in_map() -> tfr.Message:
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", syntax="proto3")
    made = file.message_type.add(name="M")
    entry = made.nested_type.add(name="MEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=1, type=FIELD.TYPE_STRING)
    entry.field.add(name="value", number=2, label=1, type=FIELD.TYPE_MESSAGE, type_name=".M")
    made.field.add(name="m", number=1, label=3, type=FIELD.TYPE_MESSAGE, type_name=".M.MEntry")
    made.field.add(name="x", number=2, label=1, type=FIELD.TYPE_INT32)
    return tfr.Message(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString(), "M")


def test_maps_in_maps_are_read_once_however_often_their_keys_come_again() -> None:
    message = map_in_map()
    record: bytes = b"\x10\x07"
    expected: Any = 7
    for _ in range(45):  # 2**45 entries, if each were read again
        entries = [b"\x0a\x01k", b"\x0a\x01k\x12" + varint(len(record)) + record]
        record = b"".join(b"\x0a" + varint(len(each)) + each for each in entries)
        expected = [expected]
    column = tfr.parse_example([record], {"x": message["m.value." * 45 + "x"]})["x"]
    assert column.tolist() == [expected]


def test_keys_that_change_while_a_map_is_read() -> None:
    keys = [b"x" * 300_000 + bytes([97 + number]) for number in range(7)]
    parts = [b"\x0a" + varint(len(key)) + key for key in keys]
    data = np.frombuffer(b"".join(b"\x0a" + varint(len(p)) + p for p in parts), np.uint8).copy()
    features = {"key": map_in_map()["m.key"], "x": map_in_map()["m.value.x"]}
    records = SimpleNamespace(data=data, offsets=np.array([0, len(data)]))
    last = data[len(data) // 7 - 1 :: len(data) // 7]
    with changing(last, 200 - last, last.copy()):  # turns their order
        for _ in range(500):
            assert len(tfr.parse_example(records, features)["x"].tolist()[0]) <= 7
