// The kinds of storage. The scheme of a path, as in "memory://shard", selects the kind. A path
// without a known scheme names a local file. Only local files are written here: Python uploads them
// to other storages.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/storage/storage_options.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// Safe from many threads.
struct Storage {
  std::string_view scheme;
  StorageTraits traits;  // of its files, unless a file has its own
  // The functions throw Error io (ENOENT if the path names nothing) and invalid. Local files ignore
  // `options`.
  std::shared_ptr<const StoredFile> (*open)(const std::string& path, IoMode mode,
                                            const StorageOptions& options);
  FileFacts (*examine)(const std::string& path, const StorageOptions& options);
  // The number of names after the scheme that form one place, beside which other owners may write:
  // 1 for a bucket, more for a dataset, as in "hf://datasets/org/name/shard".
  int root_names = 1;
};

const Storage& storage_of(std::string_view path) noexcept;
// Whether the path names a local file.
bool is_local(std::string_view path) noexcept;

// Adds a kind of storage from elsewhere, for example from a test: from now on paths may use its
// scheme. `storage` must live until its last use by the process. Throws Error invalid after too
// many additions.
void add_storage(const Storage& storage);

inline FileFacts examine_file(const std::string& path, const StorageOptions& options = {}) {
  return storage_of(path).examine(path, options);
}

}  // namespace tfrfast
