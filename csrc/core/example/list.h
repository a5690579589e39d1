// The values of one tf.train.Feature: which of its three lists it holds, and where the values are.
#pragma once

#include <cstdint>

#include "core/example/wire.h"

namespace tfrfast {

// The number is the list's field in tf.train.Feature.
enum class ListKind : std::uint8_t { none = 0, bytes = 1, floats = 2, ints = 3 };

const char* name_of(ListKind kind) noexcept;  // as TensorFlow says it: "string", "float", "int64"

enum class ListForm : std::uint8_t {
  empty,
  packed,    // `values` is the little-endian floats, or the varints
  unpacked,  // `values` is tagged values, one after another; bytes always are
  malformed,
};

// TensorFlow reads lists of SequenceExamples a little more strictly.
enum class Dialect : std::uint8_t {
  example,           // a packed run of floats may have some bytes left over; a list that is longer
                     // than its Feature may have nothing at all
  sequence_example,  // both are malformed
};

struct FeatureList {
  ListForm form = ListForm::empty;
  WireBytes values;
  const std::uint8_t* end = nullptr;  // of what was read
};

// Which list a Feature holds: `none` for an empty one. False if it begins with anything else.
bool read_list_kind(WireBytes feature, ListKind& kind) noexcept;

// Where the values of a Feature that holds `kind` are. As TensorFlow does, what follows the first
// packed run, or the list itself, is left unread: then `end` is not the end of the Feature.
FeatureList find_list(WireBytes feature, ListKind kind,
                      Dialect dialect = Dialect::example) noexcept;

}  // namespace tfrfast
