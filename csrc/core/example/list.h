// The values of one tf.train.Feature: which of its three lists it holds, and where the values are.
#pragma once

#include <cstdint>

#include "core/example/wire.h"

namespace tfrfast {

// The values are the lists' field numbers in tf.train.Feature.
enum class ListKind : std::uint8_t { none = 0, bytes = 1, floats = 2, ints = 3 };

const char* name_of(ListKind kind) noexcept;  // as TensorFlow names it: "string", "float", "int64"

enum class ListForm : std::uint8_t {
  empty,
  packed,    // `values` is the little-endian floats, or the varints
  unpacked,  // `values` is tagged values, one after another; bytes always are
  malformed,
};

// TensorFlow reads lists of SequenceExamples a little more strictly.
enum class Dialect : std::uint8_t {
  example,           // accepts left-over bytes after a packed run of floats, and an empty list that
                     // claims to be longer than its Feature
  sequence_example,  // refuses both
};

struct FeatureList {
  ListForm form = ListForm::empty;
  WireBytes values;
  const std::uint8_t* end = nullptr;  // of what was read
};

// Which list a Feature holds: `none` for an empty one. False if it begins with anything else.
bool read_list_kind(WireBytes feature, ListKind& kind) noexcept;

// Where the values of a Feature that holds `kind` are. Like TensorFlow, this does not read what
// follows the first packed run, or the list itself. Then `end` is not the end of the Feature.
FeatureList find_list(WireBytes feature, ListKind kind,
                      Dialect dialect = Dialect::example) noexcept;

}  // namespace tfrfast
