// Columns into serialized tf.train.Examples.
//
// The bytes are canonical: features sorted by the bytes of their names, numbers packed, nothing
// written twice. Protobuf's deterministic serialization differs at most in the order of names of
// which one begins the other; there its languages differ from each other, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/example/list.h"
#include "core/read/record_batch.h"

namespace tfrfast {

// One feature of many rows. Points into the caller's memory. Nobody may change the row splits, the
// offsets and what is present meanwhile; another thread that changes values can do no harm but to
// what is encoded.
//
// Row r has the values [row_splits[r], row_splits[r + 1]), or `row_values` of them from
// r * row_values where there are no splits. Value v of bytes is data[offsets[v]..offsets[v + 1]),
// or `value_bytes` bytes where there are no offsets.
struct ColumnSource {
  std::string name;
  ListKind kind = ListKind::none;  // none: a feature without values
  const std::int64_t* row_splits = nullptr;
  std::size_t row_values = 0;
  const std::int64_t* ints = nullptr;
  const float* floats = nullptr;
  const std::uint8_t* data = nullptr;
  const std::int64_t* offsets = nullptr;
  std::size_t value_bytes = 0;
  const bool* present = nullptr;  // rows where it is false do not have the feature at all
};

// Names must differ. Throws Error `feature` for an Example of 2 GiB or more, which protobuf
// refuses, and `invalid` where integers changed meanwhile and no longer fill their place.
std::shared_ptr<RecordBatch> encode_examples(std::span<const ColumnSource> columns,
                                             std::size_t rows, unsigned threads);

// Packed varints, by kernel, for tests: "portable", and "bmi2" where the CPU has it (else null).
struct VarintWriter {
  // How many bytes the varints of `count` values take.
  std::size_t (*measure)(const std::int64_t* values, std::size_t count) noexcept;
  // Writes them to `out`, nothing at or past `room_end`; returns their end, or null if there is not
  // room for all of them.
  std::uint8_t* (*write)(const std::int64_t* values, std::size_t count, std::uint8_t* out,
                         const std::uint8_t* room_end) noexcept;
};
const VarintWriter* varint_writer(const char* name) noexcept;

}  // namespace tfrfast
