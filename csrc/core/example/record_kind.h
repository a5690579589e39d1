// What a record holds. The one place that decides it, from the record's bytes alone.
#pragma once

#include <cstdint>

#include "core/example/wire.h"

namespace tfrfast {

enum class RecordKind : std::uint8_t {
  example,           // a map of features and nothing else; also an empty record
  sequence_example,  // a map of features, or none, and a map of feature lists
  event,             // TensorBoard's
  message,           // of another type
  other,             // no protobuf message
};

// As lenient as the parsers of Examples and of SequenceExamples, whose fields these records have
// and no others.
RecordKind kind_of(WireBytes record) noexcept;

const char* name_of(RecordKind kind) noexcept;  // with an article: "a tf.train.Example"

}  // namespace tfrfast
