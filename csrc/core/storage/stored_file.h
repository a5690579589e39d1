// Stored bytes as their readers see them. Every kind of storage implements this.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/storage/announcement.h"
#include "core/storage/file_facts.h"
#include "core/storage/storage_traits.h"

namespace tfrfast {

enum class IoMode : std::uint8_t {
  automatic,  // mapped on local filesystems, pread on network and FUSE ones
  mapped,
  pread,
};

struct FileRange {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// A range, and the memory it is read to. Members are not initialised, because readers have large
// arrays of these on their stacks.
struct ReadRange {
  std::uint64_t offset;
  std::uint8_t* out;
  std::size_t bytes;
};

// An open file of fixed size: if it grows later, the new bytes are not seen. Immutable and safe
// from many threads. What is read is what the file was when it was opened, or there is an Error:
// truncated if it is shorter now, stale_index if it is another file, io if it cannot be read.
class StoredFile {
 public:
  // Opens it from the storage that the path's scheme names. Where bytes can be mapped, `mode` says
  // whether they are. Throws Error io (ENOENT if there is nothing) and invalid.
  // `access` says how to reach a storage that is not this machine's.
  static std::shared_ptr<const StoredFile> open(const std::string& path,
                                                IoMode mode = IoMode::automatic,
                                                const std::string& access = "");
  virtual ~StoredFile() = default;
  StoredFile(const StoredFile&) = delete;
  StoredFile& operator=(const StoredFile&) = delete;

  const std::string& path() const noexcept { return path_; }  // as it was given
  // The size of what read() reads: the file or, for a compressed shard, its uncompressed stream.
  virtual std::uint64_t bytes() const noexcept { return facts_.bytes; }
  const FileFacts& facts() const noexcept { return facts_; }  // the file itself, when opened
  const StorageTraits& traits() const noexcept { return *traits_.load(std::memory_order_relaxed); }
  // How it was reached, if it is not on this machine. Other files of its storage are reached so,
  // too.
  virtual std::string access() const { return ""; }

  // The facts of whatever the path names now. Throws Error io.
  virtual FileFacts facts_now() const;
  // Whether `now` is still the file that was opened, as far as facts tell.
  virtual bool is_still(const FileFacts& now) const noexcept;
  // Whether any change from now on will change the facts. May wait some milliseconds.
  virtual bool await_settled() const noexcept { return facts_.version_lasts; }

  // The whole file's bytes, or null where they have to be read. Touch them only inside
  // run_guarded(). An object whose bytes have all come here may be mapped from then on.
  const std::uint8_t* mapping() const noexcept { return mapping_.load(std::memory_order_acquire); }

  // Whether the bytes are made from the file's with the help of an index, so that only checksums
  // can tell whether they are right.
  virtual bool is_inflated() const noexcept { return false; }
  // What messages call byte `offset`: "byte 12" or, for a compressed shard, both places.
  virtual std::string describe_byte(std::uint64_t offset) const;

  // Fills every range. Where requests take time, they run at the same time. Throws Error.
  virtual void read(std::span<const ReadRange> ranges) const = 0;
  void read(std::uint64_t offset, std::uint8_t* out, std::size_t byte_count) const;

  // Says that these ranges will be read soon; the storage may begin to fetch them. Null where there
  // is nothing to withdraw. Never fails.
  virtual std::unique_ptr<Announcement> announce(std::span<const FileRange> ranges,
                                                 Reads reads = Reads::another) const noexcept {
    (void)ranges, (void)reads;
    return nullptr;
  }

  // After the range was read and its checksums are wrong: whether that may have been a copy, which
  // read() no longer uses, so that it should be read again, once. Never fails.
  virtual bool mend(const FileRange& range) const noexcept { return (void)range, false; }

  // The first byte at or after `offset` that is not in a hole, or bytes(). A hole is a run of zeros
  // that takes no space. Where the storage cannot tell, there are no holes. Never fails.
  virtual std::uint64_t next_data(std::uint64_t offset) const noexcept { return offset; }
  // About how many bytes are not in holes; bytes() where the storage cannot tell.
  virtual std::uint64_t data_bytes() const noexcept { return bytes(); }

  // Whether the byte can be had without waiting for a disk or a network, as far as is known.
  virtual bool is_cached(std::uint64_t offset) const noexcept { return (void)offset, false; }

  // Whether what is mapped is a copy of what came from elsewhere. Then it counts how much of it is
  // read, for people to see.
  virtual bool is_copy() const noexcept { return false; }
  virtual void count_mapped(std::uint64_t bytes) const noexcept { (void)bytes; }

 protected:
  // `traits` outlive the file.
  StoredFile(std::string path, const FileFacts& facts, const StorageTraits& traits,
             const std::uint8_t* mapping = nullptr);

  // It can be read like a file of this machine from now on. `mapping` outlives the file.
  void become_local(const std::uint8_t* mapping, const StorageTraits& traits) const noexcept;

  // Error truncated: the file ended at or before `offset`, inside what it held when it was opened.
  [[noreturn]] void throw_shrunk(std::uint64_t offset) const;

 private:
  const std::string path_;
  const FileFacts facts_;
  mutable std::atomic<const StorageTraits*> traits_;
  mutable std::atomic<const std::uint8_t*> mapping_;
};

// Explains a fault under `file`'s mapping: Error truncated if the file is shorter now, else io.
[[noreturn]] void throw_mapping_fault(const StoredFile& file, std::uint64_t offset);

}  // namespace tfrfast
