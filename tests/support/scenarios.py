"""Messages in the shape of a driving data set's."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2

FIELD = descriptor_pb2.FieldDescriptorProto


def scenario_file() -> Any:
    """A file in the shape of a driving data set."""
    file = descriptor_pb2.FileDescriptorProto(name="s.proto", package="drive", syntax="proto2")
    enum = file.enum_type.add(name="Kind")
    for number, name in enumerate(["UNSET", "CAR", "BIKE"]):
        enum.value.add(name=name, number=number)
    state = file.message_type.add(name="State")
    state.field.add(name="x", number=2, label=1, type=FIELD.TYPE_DOUBLE)
    state.field.add(name="valid", number=3, label=1, type=FIELD.TYPE_BOOL, default_value="true")
    track = file.message_type.add(name="Track")
    track.field.add(name="id", number=1, label=1, type=FIELD.TYPE_INT32)
    track.field.add(name="kind", number=2, label=1, type=FIELD.TYPE_ENUM, type_name=".drive.Kind")
    track.field.add(
        name="states", number=3, label=3, type=FIELD.TYPE_MESSAGE, type_name=".drive.State"
    )
    scenario = file.message_type.add(name="Scenario")
    scenario.field.add(name="id", number=5, label=1, type=FIELD.TYPE_STRING)
    scenario.field.add(name="times", number=1, label=3, type=FIELD.TYPE_DOUBLE)
    scenario.field.add(
        name="tracks", number=2, label=3, type=FIELD.TYPE_MESSAGE, type_name=".drive.Track"
    )
    scenario.field.add(name="after", number=9, label=1, type=FIELD.TYPE_MESSAGE)
    scenario.field[-1].type_name = ".drive.Scenario"
    return file


def scenarios(scenario_class: Any, count: int) -> list[bytes]:
    records = []
    for number in range(count):
        made = scenario_class(id=f"s{number}", times=[0.5] * number)
        for track in range(number % 3):
            added = made.tracks.add(id=track, kind=track)
            for state in range(track + number % 2):
                added.states.add(x=number + state / 4)
        records.append(made.SerializeToString())
    return records
