#include "core/storage/storage.h"

#include <array>
#include <atomic>
#include <cstddef>

#include "core/base/error.h"
#include "core/storage/local/local_file.h"
#include "core/storage/remote/remote_file.h"

namespace tfrfast {
namespace {

std::shared_ptr<const StoredFile> open_local(const std::string& path, IoMode mode,
                                             const StorageOptions&) {
  return open_local_file(path, mode);
}

FileFacts examine_local(const std::string& path, const StorageOptions&) {
  return examine_local_file(path);
}

constexpr Storage kStorages[] = {
    {"", kLocalTraits, open_local, examine_local},
    {"s3", kRemoteTraits, open_remote_file, examine_remote_file},
    {"gs", kRemoteTraits, open_remote_file, examine_remote_file},
    {"az", kRemoteTraits, open_remote_file, examine_remote_file},
    {"hf", kRemoteTraits, open_remote_file, examine_remote_file, 3},
    {"https", kRemoteTraits, open_remote_file, examine_remote_file},
    {"http", kRemoteTraits, open_remote_file, examine_remote_file},
};
constexpr const Storage& kLocal = kStorages[0];

constexpr std::size_t kMaxAdded = 16;
constinit std::array<std::atomic<const Storage*>, kMaxAdded> added = {};

}  // namespace

const Storage& storage_of(std::string_view path) noexcept {
  const std::size_t end = path.find("://");
  if (end == std::string_view::npos || end == 0) return kLocal;
  const std::string_view scheme = path.substr(0, end);
  for (const Storage& each : kStorages) {
    if (each.scheme == scheme) return each;
  }
  for (const auto& entry : added) {
    const Storage* const each = entry.load(std::memory_order_acquire);
    if (each == nullptr) break;
    if (each->scheme == scheme) return *each;
  }
  return kLocal;
}

bool is_local(std::string_view path) noexcept {
  return &storage_of(path) == &kLocal;
}

void add_storage(const Storage& storage) {
  for (auto& entry : added) {
    const Storage* free_entry = nullptr;
    if (entry.compare_exchange_strong(free_entry, &storage)) return;
  }
  throw Error(ErrorKind::invalid, "No more kinds of storage can be added.");
}

}  // namespace tfrfast
