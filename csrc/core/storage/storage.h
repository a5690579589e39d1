// The kinds of storage. The scheme of a path, as in "memory://shard", says which one it is. A path
// without a known scheme names a file of this machine.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/storage/publication.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// Safe from many threads.
struct Storage {
  std::string_view scheme;
  StorageTraits traits;  // of its files, unless they have their own
  // These throw Error io (ENOENT if there is nothing) and invalid. `access` holds options of the
  // storage, in its own words and without secrets; empty for the usual ones.
  std::shared_ptr<const StoredFile> (*open)(const std::string& path, IoMode mode,
                                            const std::string& access);
  FileFacts (*examine)(const std::string& path, const std::string& access);
  std::unique_ptr<Publication> (*publish)(const std::string& path);
  // How many names after the scheme are one place, beside which others may write: those of a
  // bucket, or of a dataset, as in "hf://datasets/org/name/shard".
  int root_names = 1;
};

const Storage& storage_of(std::string_view path) noexcept;
// Whether the path names a file of this machine, which lies in a folder.
bool is_local(std::string_view path) noexcept;

// Adds a storage that is made elsewhere, as in tests: from now on paths may name it. It must live
// until the process has used it for the last time. Throws Error invalid if there are too many.
void add_storage(const Storage& storage);

inline FileFacts examine_file(const std::string& path, const std::string& access = "") {
  return storage_of(path).examine(path, access);
}
inline std::unique_ptr<Publication> publish_file(const std::string& path) {
  return storage_of(path).publish(path);
}

}  // namespace tfrfast
