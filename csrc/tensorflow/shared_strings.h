// Makes string tensors whose strings share memory. Strings are views if the runtime counts
// references, and copies otherwise.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

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
  if (!hands_out_views()) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<const std::uint8_t> bytes = string_at(i);
      out[i].write_copy(bytes.data(), bytes.size());
    }
    return;
  }
  std::size_t views = 0;
  for (std::size_t i = 0; i < count; ++i) views += string_at(i).size() > TString::kSmallCapacity;
  MemoryOwner* const owner = views == 0 ? nullptr : new MemoryOwner(memory, views);
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const std::uint8_t> bytes = string_at(i);
    if (bytes.size() > TString::kSmallCapacity) {
      out[i].write_view(bytes.data(), bytes.size(), owner);
    } else {
      out[i].write_small(bytes.data(), bytes.size());
    }
  }
}

}  // namespace tfrfast::tensorflow
