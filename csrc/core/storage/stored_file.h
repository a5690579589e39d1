// An interface to read stored bytes. Every kind of storage implements StoredFile.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/storage/announcement.h"
#include "core/storage/file_facts.h"
#include "core/storage/storage_options.h"
#include "core/storage/storage_traits.h"

namespace tfrfast {

enum class IoMode : std::uint8_t {
  automatic,  // mapped on local filesystems, pread on network and FUSE filesystems
  mapped,
  pread,
};

struct FileRange {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// A range and its destination in memory. Members are not initialised, because readers have large
// arrays of ReadRange on their stacks.
struct ReadRange {
  std::uint64_t offset;
  std::uint8_t* out;
  std::size_t bytes;
};

// An open file of fixed size: bytes added later are not seen. Immutable and safe from many threads.
// Reads return the bytes of the opened file, or throw Error: truncated if the file is shorter now,
// stale_index if it is another file, io if it cannot be read.
class StoredFile {
 public:
  // Opens a file in the storage that the path's scheme names. `mode` says whether to map a file
  // that can be mapped. `options` are those of a remote storage. Throws Error io (ENOENT if
  // the path names nothing) and invalid.
  static std::shared_ptr<const StoredFile> open(const std::string& path,
                                                IoMode mode = IoMode::automatic,
                                                const StorageOptions& options = {});
  virtual ~StoredFile() = default;
  StoredFile(const StoredFile&) = delete;
  StoredFile& operator=(const StoredFile&) = delete;

  const std::string& path() const noexcept { return path_; }  // as given
  // The size that read() can read: of the file or, for a compressed shard, of its uncompressed
  // stream.
  virtual std::uint64_t bytes() const noexcept { return facts_.bytes; }
  const FileFacts& facts() const noexcept { return facts_; }  // of the file itself, at opening
  const StorageTraits& traits() const noexcept { return *traits_.load(std::memory_order_relaxed); }
  // The options with which a remote file was opened. Other files of the storage need the same
  // options.
  virtual const StorageOptions& options() const noexcept;

  // The present facts of the path. Throws Error io.
  virtual FileFacts facts_now() const;
  // Whether `now` describes the opened file, judging by the facts.
  virtual bool is_still(const FileFacts& now) const noexcept;
  // Whether any later change will change the facts. May wait some milliseconds.
  virtual bool await_settled() const noexcept { return facts_.version_lasts; }

  // The whole file's bytes, or null if the bytes have to be read. Touch the bytes only inside
  // run_guarded(). An object may become mapped once all of its bytes are on this machine.
  const std::uint8_t* mapping() const noexcept { return mapping_.load(std::memory_order_acquire); }

  // Whether read() takes less time than the mapping, where there is one.
  virtual bool is_better_read() const noexcept { return false; }

  // Whether an index helped to make the bytes, so that only checksums can tell whether they are
  // right.
  virtual bool is_inflated() const noexcept { return false; }
  // Words byte `offset` for messages: "byte 12" or, for a compressed shard, both places.
  virtual std::string describe_byte(std::uint64_t offset) const;

  // Fills every range. Slow requests run at the same time. Throws Error.
  virtual void read(std::span<const ReadRange> ranges) const = 0;
  void read(std::uint64_t offset, std::uint8_t* out, std::size_t byte_count) const;

  // Announces ranges that will be read soon; the storage may begin to fetch them. Null if nothing
  // can be withdrawn. Never fails.
  virtual std::unique_ptr<Announcement> announce(std::span<const FileRange> ranges,
                                                 Reads reads = Reads::another) const noexcept {
    (void)ranges, (void)reads;
    return nullptr;
  }

  // Call after the range was read with wrong checksums. True if the bytes may have come from a
  // damaged copy, which read() no longer uses: the caller should read the range once more. Never
  // fails.
  virtual bool mend(const FileRange& range) const noexcept { return (void)range, false; }

  // The first byte at or after `offset` outside holes, or bytes(). A hole is a run of zeros that
  // takes no space. Without holes if the storage cannot tell. Never fails.
  virtual std::uint64_t next_data(std::uint64_t offset) const noexcept { return offset; }
  // The approximate number of bytes outside holes, or bytes() if the storage cannot tell.
  virtual std::uint64_t data_bytes() const noexcept { return bytes(); }

  // Whether the byte is known to be available without waiting for a disk or a network.
  virtual bool is_cached(std::uint64_t offset) const noexcept { return (void)offset, false; }

 protected:
  // `traits` must outlive the file.
  StoredFile(std::string path, const FileFacts& facts, const StorageTraits& traits,
             const std::uint8_t* mapping = nullptr);

  // From now on the file can be read like a local file. `mapping` must outlive the file.
  void become_local(const std::uint8_t* mapping, const StorageTraits& traits) const noexcept;

  // Throws Error truncated: the file ended at or before `offset`, inside its size at opening.
  [[noreturn]] void throw_shrunk(std::uint64_t offset) const;

 private:
  const std::string path_;
  const FileFacts facts_;
  mutable std::atomic<const StorageTraits*> traits_;
  mutable std::atomic<const std::uint8_t*> mapping_;
};

// Explains a fault under `file`'s mapping. Throws Error truncated if the file is shorter now,
// otherwise io.
[[noreturn]] void throw_mapping_fault(const StoredFile& file, std::uint64_t offset);

}  // namespace tfrfast
