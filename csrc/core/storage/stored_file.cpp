#include "core/storage/stored_file.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/never_destroyed.h"
#include "core/storage/storage.h"

namespace tfrfast {

StoredFile::StoredFile(std::string path, const FileFacts& facts, const StorageTraits& traits,
                       const std::uint8_t* mapping)
    : path_(std::move(path)), facts_(facts), traits_(&traits), mapping_(mapping) {}

std::shared_ptr<const StoredFile> StoredFile::open(const std::string& path, IoMode mode,
                                                   const StorageOptions& options) {
  return storage_of(path).open(path, mode, options);
}

const StorageOptions& StoredFile::options() const noexcept {
  static const NeverDestroyed<StorageOptions> usual;
  return usual.value();
}

FileFacts StoredFile::facts_now() const {
  return examine_file(path_);
}

bool StoredFile::is_still(const FileFacts& now) const noexcept {
  return now.bytes == facts_.bytes && now.mtime_ns == facts_.mtime_ns &&
         now.version == facts_.version;
}

std::string StoredFile::describe_byte(std::uint64_t offset) const {
  return "byte " + std::to_string(offset);
}

void StoredFile::read(std::uint64_t offset, std::uint8_t* out, std::size_t byte_count) const {
  const ReadRange range{offset, out, byte_count};
  read({&range, 1});
}

void StoredFile::become_local(const std::uint8_t* mapping,
                              const StorageTraits& traits) const noexcept {
  mapping_.store(mapping, std::memory_order_release);
  traits_.store(&traits, std::memory_order_release);
}

void StoredFile::throw_shrunk(std::uint64_t offset) const {
  throw Error(ErrorKind::truncated,
              "'" + path_ + "' ends at or before byte " + std::to_string(offset) + ", but had " +
                  std::to_string(bytes()) +
                  " bytes when it was opened: it was truncated meanwhile. Restore it and open a "
                  "new reader.",
              {path_, {}, static_cast<std::int64_t>(offset)});
}

void throw_mapping_fault(const StoredFile& file, std::uint64_t offset) {
  std::optional<std::uint64_t> bytes_now;
  try {
    bytes_now = file.facts_now().bytes;
  } catch (const Error&) {
    // The file is gone, or out of reach.
  }
  if (bytes_now && *bytes_now < file.facts().bytes) {
    throw Error(ErrorKind::truncated,
                "'" + file.path() + "' has " + std::to_string(*bytes_now) + " bytes now, but had " +
                    std::to_string(file.bytes()) +
                    " when it was opened: it was truncated while byte " + std::to_string(offset) +
                    " and later bytes were being read. Restore it and open a new reader.",
                {file.path(), {}, static_cast<std::int64_t>(offset)});
  }
  throw Error(ErrorKind::io,
              "Reading '" + file.path() + "' at byte " + std::to_string(offset) +
                  " failed under its memory mapping: the disk or the network did not deliver. "
                  "Reading with io=\"pread\" tells the exact error.",
              {file.path(), {}, static_cast<std::int64_t>(offset)}, EIO);
}

}  // namespace tfrfast
