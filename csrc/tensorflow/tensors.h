// Makes tensors of strings that share memory, and of decoded columns. Strings are views if the
// runtime counts references, and copies otherwise.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/example/columns.h"
#include "core/example/schema.h"
#include "tensorflow/kernel_call.h"
#include "tensorflow/tstring.h"

namespace tfrfast::tensorflow {

// Keeps memory alive as long as any string points into the memory. Owns itself: deleted with the
// last reference.
class MemoryOwner : public StringOwner {
 public:
  MemoryOwner(std::shared_ptr<const void> memory, std::size_t references);

 private:
  static void add_reference(StringOwner* self);
  static bool drop_reference(StringOwner* self);

  const std::shared_ptr<const void> memory_;
  std::atomic<std::size_t> references_;
};

// Writes `count` strings. string_at(i) returns the bytes of string i, which must lie in `memory`.
template <class StringAt>
void write_shared_strings(TString* out, std::size_t count, const StringAt& string_at,
                          const std::shared_ptr<const void>& memory) {
  // Asked once: each view needs a reference.
  const bool has_views = hands_out_views();
  std::size_t views = 0;
  for (std::size_t i = 0; i < count && has_views; ++i) {
    views += string_at(i).size() > TString::kSmallCapacity;
  }
  MemoryOwner* const owner = views == 0 ? nullptr : new MemoryOwner(memory, views);
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const std::uint8_t> bytes = string_at(i);
    if (owner != nullptr && bytes.size() > TString::kSmallCapacity) {
      out[i].write_view(bytes.data(), bytes.size(), owner);
    } else {
      out[i].write_copy(bytes.data(), bytes.size());
    }
  }
}

// Writes the columns to outputs `first`, `first + 1`, ... Returns the number after the last output.
// A column becomes these tensors, in this order, as far as it has them: indices, values, row
// splits, step splits, dense shape. Throws Error(invalid) if an output has another type in the
// graph.
int write_columns(KernelCall& call, int first, const FeatureSchema& schema,
                  std::vector<Column> columns);

}  // namespace tfrfast::tensorflow
