"""Messages with the fields, numbers and sizes of the Waymo Open Dataset's motion scenarios."""

from __future__ import annotations

from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

NAME = "waymo.open_dataset.Scenario"
#: Ten fields that a motion model reads.
PATHS = [
    "scenario_id",
    "timestamps_seconds",
    "tracks.id",
    "tracks.object_type",
    "tracks.states.center_x",
    "tracks.states.center_y",
    "tracks.states.heading",
    "tracks.states.velocity_x",
    "tracks.states.velocity_y",
    "tracks.states.valid",
]

# "label type name = number"; a type that is not a scalar is a message of this table, or an enum.
_MESSAGES = {
    "ObjectState": "o double center_x = 2, o double center_y = 3, o double center_z = 4,"
    " o float length = 5, o float width = 6, o float height = 7, o float heading = 8,"
    " o float velocity_x = 9, o float velocity_y = 10, o bool valid = 11",
    "Track": "o int32 id = 1, o ObjectType object_type = 2, r ObjectState states = 3",
    "MapPoint": "o double x = 1, o double y = 2, o double z = 3",
    "LaneCenter": "o double speed_limit_mph = 1, o bool interpolating = 3, r MapPoint polyline = 8,"
    " p int64 entry_lanes = 9, p int64 exit_lanes = 10",
    "RoadEdge": "o int32 type = 1, r MapPoint polyline = 2",
    "MapFeature": "o int64 id = 1, | LaneCenter lane = 3, | RoadEdge road_edge = 5",
    "LaneState": "o int64 lane = 1, o int32 state = 2, o MapPoint stop_point = 3",
    "DynamicMapState": "r LaneState lane_states = 1",
    "Scenario": "o string scenario_id = 5, r double timestamps_seconds = 1,"
    " o int32 current_time_index = 10, r Track tracks = 2, r DynamicMapState dynamic_map_states = 7,"
    " r MapFeature map_features = 8, o int32 sdc_track_index = 6, r int32 objects_of_interest = 4",
}
_SCALARS = {"double": 1, "float": 2, "int64": 3, "int32": 5, "bool": 8, "string": 9}
_TYPES = ("UNSET", "VEHICLE", "PEDESTRIAN", "CYCLIST", "OTHER")


def scenario_set() -> bytes:
    """The FileDescriptorSet of the messages, in proto2."""
    file = descriptor_pb2.FileDescriptorProto(
        name="scenario.proto", package=NAME.rpartition(".")[0]
    )
    enum = file.enum_type.add(name="ObjectType")
    for number, name in enumerate(_TYPES):
        enum.value.add(name=f"TYPE_{name}", number=number)
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for each in fields.split(","):
            label, kind, field_name, _, number = each.split()
            field = message.field.add(name=field_name, number=int(number))
            field.label = 3 if label in "rp" else 1
            field.type = _SCALARS.get(kind, 14 if kind == "ObjectType" else 11)
            if kind not in _SCALARS:
                field.type_name = f".{file.package}.{kind}"
            if label == "p":
                field.options.packed = True
            if label == "|":
                if not message.oneof_decl:
                    message.oneof_decl.add(name="feature_data")
                field.oneof_index = 0
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()


def scenario_type() -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(scenario_set()).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(NAME))


def scenarios(count: int, tracks: int = 60, features: int = 100) -> list[bytes]:
    """Scenarios of about 500 KB: 91 states of each track, and a map of polylines."""
    random = np.random.default_rng(7)
    made = scenario_type()
    records = []
    for number in range(count):
        scenario = made(scenario_id=f"{number:016x}", current_time_index=10, sdc_track_index=3)
        scenario.timestamps_seconds.extend(np.arange(91) / 10)
        scenario.objects_of_interest.extend([1, 2])
        for place in range(tracks):
            track = scenario.tracks.add(id=100 + 7 * place, object_type=1 + place % 4)
            for numbers in random.normal(0, 1000, (91, 9)).tolist():
                state = track.states.add(valid=bool(numbers[0] > -800))
                if state.valid:
                    state.center_x, state.center_y, state.center_z = numbers[:3]
                    state.length, state.width, state.height = numbers[3:6]
                    state.heading, state.velocity_x, state.velocity_y = numbers[6:]
        for place in range(features):
            feature = scenario.map_features.add(id=place)
            line = feature.lane if place % 2 else feature.road_edge
            for x, y, z in random.normal(0, 1000, (60, 3)).tolist():
                line.polyline.add(x=x, y=y, z=z)
            if place % 2:
                feature.lane.entry_lanes.extend([place - 1, place + 300])
        records.append(scenario.SerializeToString())
    return records
