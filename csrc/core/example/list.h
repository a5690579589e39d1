// The list that a tf.train.Feature holds, and where the list's values are.
#pragma once

#include <cstdint>

#include "core/example/wire.h"

namespace tfrfast {

// Each enumerator equals the list's field number in tf.train.Feature.
enum class ListKind : std::uint8_t { none = 0, bytes = 1, floats = 2, ints = 3 };

const char* name_of(ListKind kind) noexcept;  // TensorFlow's name: "string", "float", "int64"

enum class ListForm : std::uint8_t {
  empty,
  packed,    // `values` holds little-endian floats, or varints
  unpacked,  // `values` holds tagged values, back to back; the only form of bytes
  malformed,
};

// TensorFlow reads the lists of a SequenceExample a little more strictly.
enum class Dialect : std::uint8_t {
  example,  // accepts left-over bytes after a packed run of floats, and an empty list whose length
            // reaches past its Feature
  sequence_example,  // refuses both
};

struct FeatureList {
  ListForm form = ListForm::empty;
  WireBytes values;
  const std::uint8_t* end = nullptr;  // end of the bytes that were read
};

// Sets `kind` to the list that a Feature holds, `none` for an empty Feature. False if the Feature
// begins with anything else.
bool read_list_kind(WireBytes feature, ListKind& kind) noexcept;

// Finds the values of a Feature that holds `kind`. Like TensorFlow, reads nothing after the first
// packed run or after the list, so `end` may lie before the Feature's end.
FeatureList find_list(WireBytes feature, ListKind kind,
                      Dialect dialect = Dialect::example) noexcept;

std::size_t count_values(const FeatureList& list, ListKind kind) noexcept;

}  // namespace tfrfast
