#include "core/example/record_kind.h"

#include <optional>

#include "core/example/entries.h"

namespace tfrfast {
namespace {

constexpr unsigned kFeatures = 1;
constexpr unsigned kFeatureLists = 2;

// A FeatureList holds Features and nothing else.
bool is_list_of_features(WireBytes list) noexcept {
  WireReader reader(list);
  std::uint32_t length;
  while (!reader.at_end()) {
    if (!reader.take(bytes_tag(1)) || !reader.read_length(length)) return false;
    reader.enter(length);
  }
  return true;
}

// Whether a message that consists of maps has maps of feature lists. Nothing if it has other
// fields.
std::optional<bool> has_lists(WireBytes record) noexcept {
  bool found = false;
  WireReader reader(record);
  std::uint32_t length;
  while (!reader.at_end()) {
    const bool is_of_lists = reader.take(bytes_tag(kFeatureLists));
    if ((!is_of_lists && !reader.take(bytes_tag(kFeatures))) || !reader.read_length(length)) {
      return std::nullopt;
    }
    reader.enter(length);
    found = found || is_of_lists;
  }
  return found;
}

bool are_feature_lists(WireBytes record) noexcept {
  bool all = true;
  const std::uint8_t* const stopped = for_each_entry(
      record, [&](WireBytes, WireBytes list) { all = all && is_list_of_features(list); },
      kFeatureLists);
  return all && stopped == nullptr;
}

// The fields of tensorflow.Event: the time as a double, the step, and then messages and strings.
bool is_field_of_event(std::uint64_t tag) noexcept {
  constexpr std::uint64_t kTime = 1 << 3 | 1, kStep = 2 << 3 | 0, kLastField = 11;
  const std::uint64_t field = tag >> 3;
  return tag == kTime || tag == kStep || ((tag & 7) == 2 && field > 2 && field <= kLastField);
}

// Unlike the parsers, exact: text must not pass for a message.
RecordKind kind_of_message(WireBytes record) noexcept {
  bool is_event = true, has_time = false;
  WireReader reader(record);
  while (!reader.at_end()) {
    WireReader field = reader;
    std::uint64_t tag;
    WireBytes bytes;
    if (!field.read_varint(tag) || tag >> 3 == 0 || tag >> 32 != 0) return RecordKind::other;
    if ((tag & 7) == 2 && !field.read_bytes(bytes)) return RecordKind::other;
    if (!reader.skip_field()) return RecordKind::other;
    is_event = is_event && is_field_of_event(tag);
    has_time = has_time || tag == (1 << 3 | 1);
  }
  return is_event && has_time ? RecordKind::event : RecordKind::message;
}

}  // namespace

RecordKind kind_of(WireBytes record) noexcept {
  const std::optional<bool> lists = has_lists(record);
  if (lists && for_each_entry(record, [](WireBytes, WireBytes) {}) == nullptr) {
    if (!*lists) return RecordKind::example;
    if (are_feature_lists(record)) return RecordKind::sequence_example;
  }
  return kind_of_message(record);
}

const char* name_of(RecordKind kind) noexcept {
  switch (kind) {
    case RecordKind::example:
      return "a tf.train.Example";
    case RecordKind::sequence_example:
      return "a tf.train.SequenceExample";
    case RecordKind::event:
      return "a tensorflow.Event";
    case RecordKind::message:
      return "a protobuf message of another type";
    case RecordKind::other:
      break;
  }
  return "bytes of another format";
}

}  // namespace tfrfast
