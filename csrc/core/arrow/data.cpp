#include "core/arrow/data.h"

#include <algorithm>
#include <cstring>

namespace tfrfast {
namespace {

// The memory of an exported array. Children that were not moved away are released with the array.
struct ExportedArray {
  std::vector<std::shared_ptr<const void>> owners;
  std::vector<const void*> buffers;
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
  ArrowArray dictionary = {};

  ~ExportedArray() {
    for (ArrowArray& child : children) {
      if (child.release != nullptr) child.release(&child);
    }
    if (dictionary.release != nullptr) dictionary.release(&dictionary);
  }
};

void release_array(ArrowArray* array) {
  delete static_cast<ExportedArray*>(array->private_data);
  array->release = nullptr;
}

std::size_t bitmap_bytes(std::size_t rows) {
  return std::max<std::size_t>(1, rows / 8 + (rows % 8 != 0));
}

}  // namespace

void export_array(ArrowData data, ArrowArray* out) {
  auto owned = std::make_unique<ExportedArray>();
  for (ArrowBuffer& buffer : data.buffers) {
    owned->buffers.push_back(buffer.data);
    if (buffer.owner != nullptr) owned->owners.push_back(std::move(buffer.owner));
  }
  owned->children.resize(data.children.size());
  for (std::size_t i = 0; i < data.children.size(); ++i) {
    export_array(std::move(data.children[i]), &owned->children[i]);
    owned->pointers.push_back(&owned->children[i]);
  }
  if (data.dictionary != nullptr) export_array(*data.dictionary, &owned->dictionary);
  *out = {};
  out->length = data.length;
  out->null_count = data.null_count;
  out->n_buffers = static_cast<std::int64_t>(owned->buffers.size());
  out->n_children = static_cast<std::int64_t>(owned->children.size());
  out->buffers = owned->buffers.data();
  out->children = owned->pointers.data();
  out->dictionary = data.dictionary != nullptr ? &owned->dictionary : nullptr;
  out->release = &release_array;
  out->private_data = owned.release();
}

PooledBuffer bits_of_bytes(const std::uint8_t* bytes, std::size_t count) {
  PooledBuffer bits(bitmap_bytes(count));
  std::memset(bits.data(), 0, bitmap_bytes(count));
  for (std::size_t i = 0; i < count; ++i) {
    bits.data()[i / 8] |= static_cast<std::uint8_t>((bytes[i] != 0) << i % 8);
  }
  return bits;
}

}  // namespace tfrfast
