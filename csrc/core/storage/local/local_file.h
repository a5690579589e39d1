// Local files: mapped, or read with pread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/storage/local/local_facts.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

class FileDescriptor;

// On disks, reading a page costs no more than reading a byte of the page. The page cache keeps
// announced bytes until memory runs short.
inline constexpr StorageTraits kLocalTraits = {
    false, 4 << 10, std::size_t{1} << 20, 32, std::uint64_t{1} << 30,
};

// Maps the file if `mode` is `mapped`, or `automatic` and the filesystem is local. If the system
// refuses the mapping (there may be too many), the file is read with pread. Installs the fault
// guard. A mapped file needs no descriptor. Files read with pread share a small pool of
// descriptors, so ten thousand may be open at once. At most kMaxMappings files are mapped at the
// same time, because systems limit the mappings of a process. No mapping is evicted: with more
// shards, read at random, nearly every record would need a new mapping, which costs more than a
// pread. Without eviction no file needs a count of its readers.
//
// If `absolute_path` is not empty, opens `absolute_path`; `path` is then only the file's name in
// messages.
inline constexpr std::size_t kMaxMappings = 1 << 15;
std::shared_ptr<const StoredFile> open_local_file(const std::string& path, IoMode mode,
                                                  const std::string& absolute_path = "");

// The common part of mapped and other files.
class LocalFile : public StoredFile {
 public:
  ~LocalFile() override;

  FileFacts facts_now() const override;  // valid after the process has changed its folder, too
  bool is_still(const FileFacts& now) const noexcept override;
  bool await_settled() const noexcept override;
  std::uint64_t next_data(std::uint64_t offset) const noexcept override;
  std::uint64_t data_bytes() const noexcept override;
  // If the system cannot tell: true if mapped, false if not.
  bool is_cached(std::uint64_t offset) const noexcept override;

 protected:
  LocalFile(std::string path, std::string absolute_path, const FileFacts& facts,
            const std::uint8_t* mapping = nullptr);

  // A descriptor of the opened file. Hold the descriptor briefly: there are few. If the descriptor
  // had to be closed, opens the file again by name. Throws Error truncated if the file is shorter
  // now, stale_index if the file was otherwise changed, or replaced.
  std::shared_ptr<const FileDescriptor> descriptor() const;
  std::shared_ptr<const FileDescriptor> descriptor_if_possible() const noexcept;  // or null
  // Reads with descriptor(), and throws like it.
  void read_by_system(std::span<const ReadRange> ranges) const;
  const std::string& absolute_path() const noexcept { return absolute_path_; }

 private:
  const std::string absolute_path_;
};

}  // namespace tfrfast
