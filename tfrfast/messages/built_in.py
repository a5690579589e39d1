"""Messages that need no descriptor: TensorBoard's events, and SequenceExamples."""

from __future__ import annotations

from typing import Any

from tfrfast.messages.descriptors import DescribedField, DescribedMessage, Descriptors

__all__ = ["EVENT", "SEQUENCE_EXAMPLE"]

_TYPES = {
    "double": 1,
    "float": 2,
    "int64": 3,
    "uint64": 4,
    "int32": 5,
    "bool": 8,
    "string": 9,
    "bytes": 12,
    "uint32": 13,
}
_MESSAGE = 11

# "type name = number", as in a .proto file, with "repeated" before repeated fields, and "|" before
# the members of the message's oneof. Enums are int32 here.
_EVENT = {
    "Event": "double wall_time = 1, int64 step = 2, |string file_version = 3, |bytes graph_def = 4,"
    " |Summary summary = 5, |LogMessage log_message = 6, |SessionLog session_log = 7,"
    " |TaggedRunMetadata tagged_run_metadata = 8, |bytes meta_graph_def = 9,"
    " SourceMetadata source_metadata = 10",
    "SourceMetadata": "string writer = 1",
    "LogMessage": "int32 level = 1, string message = 2",
    "SessionLog": "int32 status = 1, string checkpoint_path = 2, string msg = 3",
    "TaggedRunMetadata": "string tag = 1, bytes run_metadata = 2",
    "Summary": "repeated Value value = 1",
    "Value": "string tag = 1, |float simple_value = 2, |bytes obsolete_old_style_histogram = 3,"
    " |Image image = 4, |Histogram histo = 5, |Audio audio = 6, string node_name = 7,"
    " |Tensor tensor = 8, Metadata metadata = 9",
    "Image": "int32 height = 1, int32 width = 2, int32 colorspace = 3,"
    " bytes encoded_image_string = 4",
    "Audio": "float sample_rate = 1, int64 num_channels = 2, int64 length_frames = 3,"
    " bytes encoded_audio_string = 4, string content_type = 5",
    "Histogram": "double min = 1, double max = 2, double num = 3, double sum = 4,"
    " double sum_squares = 5, repeated double bucket_limit = 6, repeated double bucket = 7",
    "Metadata": "PluginData plugin_data = 1, string display_name = 2,"
    " string summary_description = 3, int32 data_class = 4",
    "PluginData": "string plugin_name = 1, bytes content = 2",
    "Tensor": "int32 dtype = 1, Shape tensor_shape = 2, int32 version_number = 3,"
    " bytes tensor_content = 4, repeated float float_val = 5, repeated double double_val = 6,"
    " repeated int32 int_val = 7, repeated bytes string_val = 8, repeated int64 int64_val = 10,"
    " repeated bool bool_val = 11, repeated int32 half_val = 13, repeated uint32 uint32_val = 16,"
    " repeated uint64 uint64_val = 17",
    "Shape": "repeated Dim dim = 2, bool unknown_rank = 3",
    "Dim": "int64 size = 1, string name = 2",
}
_SEQUENCE_EXAMPLE = {
    "SequenceExample": "Features context = 1, FeatureLists feature_lists = 2",
    "Features": "repeated FeatureEntry feature = 1",
    "FeatureEntry": "string key = 1, Feature value = 2",
    "FeatureLists": "repeated ListEntry feature_list = 1",
    "ListEntry": "string key = 1, FeatureList value = 2",
    "FeatureList": "repeated Feature feature = 1",
    "Feature": "|BytesList bytes_list = 1, |FloatList float_list = 2, |Int64List int64_list = 3",
    "BytesList": "repeated bytes value = 1",
    "FloatList": "repeated float value = 1",
    "Int64List": "repeated int64 value = 1",
}
_MAP_ENTRIES = ("FeatureEntry", "ListEntry")


def _described(table: dict[str, str]) -> Descriptors:
    descriptors = Descriptors()
    for name, text in table.items():
        message = DescribedMessage(f"tensorflow.{name}", name in _MAP_ENTRIES)
        for each in text.split(","):
            *repeated, kind, field, _, number = each.strip().lstrip("|").split()
            in_oneof = each.strip().startswith("|")
            is_message = kind not in _TYPES
            message.fields[field] = DescribedField(
                field,
                int(number),
                _TYPES.get(kind, _MESSAGE),
                bool(repeated),
                f"tensorflow.{kind}" if is_message else "",
                None,
                0 if in_oneof else None,
                (in_oneof or is_message) and not repeated,
                kind == "string",
            )
        descriptors.messages[message.name] = message
    return descriptors


EVENT: Any = _described(_EVENT)
SEQUENCE_EXAMPLE: Any = _described(_SEQUENCE_EXAMPLE)
