// Encodes columns as serialized tf.train.Examples.
//
// The bytes are canonical: features sorted by name, numbers packed, no duplicates. Protobuf's own
// deterministic serialization may differ in one case, on which its implementations disagree: the
// order of two names, one of which is a prefix of the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/example/list.h"
#include "core/read/record_batch.h"

namespace tfrfast {

// One feature of many rows. Points into the caller's memory. `row_splits`, `offsets` and `present`
// must not change during encoding. If another thread changes values, only the encoded values are
// affected.
//
// Row r has the values [row_splits[r], row_splits[r + 1]) or, without splits, `row_values` values
// from r * row_values on. Byte string v is data[offsets[v]..offsets[v + 1]) or, without offsets,
// the v-th run of `value_bytes` bytes.
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
  const bool* present = nullptr;  // false: the row lacks the feature
};

// Names must differ. Throws Error `feature` for an Example of 2 GiB or more, which protobuf
// refuses, and `invalid` if another thread changed integers and their encoding no longer fits.
std::shared_ptr<RecordBatch> encode_examples(std::span<const ColumnSource> columns,
                                             std::size_t rows, unsigned threads);

// Writes packed varints. Kernels by name, for tests: "portable", and "bmi2" where the CPU has BMI2
// (otherwise null).
struct VarintWriter {
  // Returns the bytes that the varints of `count` values take.
  std::size_t (*measure)(const std::int64_t* values, std::size_t count) noexcept;
  // Writes the varints to `out`, never at or past `space_end`. Returns their end, or null if the
  // varints do not fit.
  std::uint8_t* (*write)(const std::int64_t* values, std::size_t count, std::uint8_t* out,
                         const std::uint8_t* space_end) noexcept;
};
const VarintWriter* varint_writer(const char* name) noexcept;
// The kernel to use on this CPU. Executes CPUID on every call.
const VarintWriter& fastest_varint_writer() noexcept;

}  // namespace tfrfast
