// Files of this machine: mapped, or read with pread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/storage/local_facts.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

class FileDescriptor;

// What disks are like: a page costs as much as its first byte. The page cache keeps what was
// announced, until more of it comes than there is memory for.
inline constexpr StorageTraits kLocalTraits = {
    false, 4 << 10, std::size_t{1} << 20, 32, std::uint64_t{1} << 30,
};

// Maps when asked, or when `automatic` and the filesystem is local; a mapping that the system
// refuses (too many of them, say) falls back to pread. Installs the fault guard. A mapped file is
// read without a descriptor; a file read by pread shares a small pool of descriptors with all
// others, so ten thousand of them may be open at once.
std::shared_ptr<const StoredFile> open_local_file(const std::string& path, IoMode mode);

// What mapped and other files have in common.
class LocalFile : public StoredFile {
 public:
  ~LocalFile() override;

  FileFacts facts_now() const override;  // whatever the process's folder is by now
  bool is_still(const FileFacts& now) const noexcept override;
  bool await_settled() const noexcept override;
  std::uint64_t next_data(std::uint64_t offset) const noexcept override;
  std::uint64_t data_bytes() const noexcept override;
  // Where the system cannot tell: true if mapped, false if not.
  bool is_cached(std::uint64_t offset) const noexcept override;

 protected:
  LocalFile(std::string path, const FileFacts& facts, const std::uint8_t* mapping = nullptr);

  // A descriptor of the file that was opened, to use and let go of: there are few of them. One that
  // had to be closed meanwhile is opened again by name: Error stale_index if the file there is not
  // the one that was opened, or was changed, truncated if it is shorter.
  std::shared_ptr<const FileDescriptor> descriptor() const;

 private:
  const std::string absolute_path_;
};

}  // namespace tfrfast
