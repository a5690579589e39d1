#include "core/storage/storage.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

#include "core/base/error.h"
#include "core/storage/local/local_file.h"
#include "core/storage/local/published_file.h"
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

// Shards for objects are written in a folder of this machine, and uploaded from Python.
std::unique_ptr<Publication> refuse_to_publish(const std::string& url) {
  throw Error(
      ErrorKind::invalid,
      "'" + url +
          "' is a URL, and no file can be written there. Write into a folder, and copy the file.",
      {url, {}, {}});
}

constexpr Storage kStorages[] = {
    {"", kLocalTraits, open_local, examine_local, publish_local_file},
    {"s3", kRemoteTraits, open_remote_file, examine_remote_file, refuse_to_publish},
    {"gs", kRemoteTraits, open_remote_file, examine_remote_file, refuse_to_publish},
    {"az", kRemoteTraits, open_remote_file, examine_remote_file, refuse_to_publish},
    {"hf", kRemoteTraits, open_remote_file, examine_remote_file, nullptr, 3},
    {"https", kRemoteTraits, open_remote_file, examine_remote_file, nullptr},
    {"http", kRemoteTraits, open_remote_file, examine_remote_file, nullptr},
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

std::vector<const Storage*> storages_with_schemes() {
  std::vector<const Storage*> all;
  for (const Storage& each : kStorages) {
    if (!each.scheme.empty()) all.push_back(&each);
  }
  for (const auto& entry : added) {
    if (const Storage* const each = entry.load(std::memory_order_acquire)) all.push_back(each);
  }
  return all;
}

bool is_local(std::string_view path) noexcept {
  return &storage_of(path) == &kLocal;
}

std::unique_ptr<Publication> publish_file(const std::string& path) {
  const auto publish = storage_of(path).publish;
  return publish == nullptr ? refuse_to_publish(path) : publish(path);
}

void publish_copy(const std::string& from, const std::string& to, bool durable, Existing existing) {
  constexpr std::uint64_t kPieceBytes = 1 << 20;
  const auto file = StoredFile::open(from, IoMode::pread);
  const auto copy = publish_file(to);
  std::vector<std::uint8_t> piece(static_cast<std::size_t>(std::min(kPieceBytes, file->bytes())));
  for (std::uint64_t done = 0; done < file->bytes(); done += piece.size()) {
    piece.resize(static_cast<std::size_t>(std::min(kPieceBytes, file->bytes() - done)));
    file->read(done, piece.data(), piece.size());
    copy->append(piece.data(), piece.size());
  }
  copy->commit(durable, existing);
}

void add_storage(const Storage& storage) {
  for (auto& entry : added) {
    const Storage* free_entry = nullptr;
    if (entry.compare_exchange_strong(free_entry, &storage)) return;
  }
  throw Error(ErrorKind::invalid, "No more kinds of storage can be added.");
}

}  // namespace tfrfast
