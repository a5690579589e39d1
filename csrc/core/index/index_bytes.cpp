#include "core/index/index_bytes.h"

#include <cstring>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/storage/fault_guard.h"

namespace tfrfast {

void refuse_index(const std::string& path, const std::string& what) {
  throw Error(
      ErrorKind::stale_index,
      "Index '" + path + "' cannot be used: " + what + " Build it again: `tfrfast index --force`.",
      {path, {}, {}});
}

IndexBytes::IndexBytes(std::shared_ptr<const StoredFile> file, std::uint64_t begin,
                       std::uint64_t bytes)
    : path_(file->path()), size_(bytes) {
  if (file->mapping() == nullptr) {
    read_from(*file, begin);
  } else {
    bytes_ = file->mapping() + begin;
    file_ = std::move(file);
  }
}

void IndexBytes::read_from(const StoredFile& file, std::uint64_t begin) {
  check_memory_for(size_, 1);
  owned_.resize((static_cast<std::size_t>(size_) + 7) / 8);
  auto* const bytes = reinterpret_cast<std::uint8_t*>(owned_.data());
  file.read(begin, bytes, static_cast<std::size_t>(size_));
  bytes_ = bytes;
}

void IndexBytes::check_memory_for(std::uint64_t count, std::size_t width) const {
  if (count > max_memory_bytes() / width) {
    refuse_index(path_, "it claims to hold more than memory can hold.");
  }
}

void IndexBytes::copy_to(void* out, std::uint64_t offset, std::size_t count) const {
  if (count == 0) return;
  const std::uint8_t* const from = at(offset);
  if (!run_guarded([=] { std::memcpy(out, from, count); })) throw_mapping_fault(*file_, offset);
}

}  // namespace tfrfast
