// Files of this machine: mapped, or read with pread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/storage/local/local_facts.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

class FileDescriptor;

// On disks, a page costs as much as one of its bytes. The page cache keeps what was announced until
// memory runs short.
inline constexpr StorageTraits kLocalTraits = {
    false, 4 << 10, std::size_t{1} << 20, 32, std::uint64_t{1} << 30,
};

// Maps the file if `mode` is `mapped`, or `automatic` and the filesystem is local. If the system
// refuses the mapping (there may be too many), the file is read with pread. Installs the fault
// guard. A mapped file needs no descriptor. Files read with pread share a small pool of
// descriptors, so ten thousand of them may be open at once. At most kMaxMappings files are mapped
// at the same time, because a process may have only so many mappings. No mapping is evicted: if so
// many shards are read at random, nearly every record would need a new mapping, which costs more
// than a pread. Without eviction no file needs a count of its readers.
//
// If `absolute_path` is not empty, it is what is opened, and `path` what the file is called.
inline constexpr std::size_t kMaxMappings = 1 << 15;
std::shared_ptr<const StoredFile> open_local_file(const std::string& path, IoMode mode,
                                                  const std::string& absolute_path = "");

// What mapped and other files have in common.
class LocalFile : public StoredFile {
 public:
  ~LocalFile() override;

  FileFacts facts_now() const override;  // also after the process has changed its folder
  bool is_still(const FileFacts& now) const noexcept override;
  bool await_settled() const noexcept override;
  std::uint64_t next_data(std::uint64_t offset) const noexcept override;
  std::uint64_t data_bytes() const noexcept override;
  // Where the system cannot tell: true if mapped, false if not.
  bool is_cached(std::uint64_t offset) const noexcept override;

 protected:
  LocalFile(std::string path, std::string absolute_path, const FileFacts& facts,
            const std::uint8_t* mapping = nullptr);

  // A descriptor of the file that was opened. Hold it briefly: there are few of them. If it had to
  // be closed meanwhile, it is opened again by name. Throws Error truncated if the file is shorter
  // now, stale_index if it was changed otherwise or replaced.
  std::shared_ptr<const FileDescriptor> descriptor() const;

 private:
  const std::string absolute_path_;
};

}  // namespace tfrfast
