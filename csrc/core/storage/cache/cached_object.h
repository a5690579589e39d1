// One version of an object in a cache. The object may be anything with a name that never changes.
//
// The object's file is sparse, and never changes its size: a page that names the object, a table
// with a line for each block, and the object's bytes. A line has the block's checksum. The bytes
// are written first, then the line, so a line that does not match the bytes is not believed.
// Neither kill -9, nor a power cut, nor processes that write the same block, nor a program that
// damages the file ever produces wrong bytes: such blocks are fetched again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "core/base/never_destroyed.h"
#include "core/storage/cache/cache_folder.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// The unit of keeping, unless an object has blocks of its own.
inline constexpr std::uint64_t kCacheBlockBytes = 64 << 10;

// The bytes that this process has read from caches, without mapped bytes.
std::uint64_t cache_bytes_read() noexcept;

// Safe from many threads. Processes share the file, each with its own CachedObject. A block is
// written again only if it was found to be wrong.
//
// No function fails: bytes that cannot be kept or read have to come from elsewhere. A forked child
// continues with the parent's state.
class CachedObject {
 public:
  // Each object takes a mapping, and a process may have only so many: 65,530 on Linux, unless the
  // administrator allows more. Local files take up to kMaxMappings.
  static constexpr std::size_t kMaxOpen = 24 << 10;

  // `identity` names the object and its version. A file of another identity under the same URL is
  // removed. `block_ends` are the ends of the object's blocks, if they are not those of 64 KiB.
  // Null if the disk has no space for the file, or if kMaxOpen objects are open, with a warning.
  static std::shared_ptr<CachedObject> open(std::shared_ptr<const CacheSet> set,
                                            const std::string& url, const std::string& identity,
                                            std::uint64_t bytes,
                                            std::vector<std::uint64_t> block_ends = {}) noexcept;
  ~CachedObject();
  CachedObject(const CachedObject&) = delete;
  CachedObject& operator=(const CachedObject&) = delete;

  // Copies bytes from `offset` on as far as they are present and match their checksums, or wait for
  // being written. Returns their number.
  std::size_t read(std::uint64_t offset, std::uint8_t* out, std::size_t count) const noexcept;
  // Whether the whole range is present, as far as the table says.
  bool has(std::uint64_t offset, std::uint64_t count) const noexcept;
  // The whole object as a mapping, once all of it is present and verified. Null before. The mapping
  // lives as long as this object.
  const std::uint8_t* whole() const noexcept;

  // Returns the bytes to request: whole blocks as far as there is space, otherwise the absent bytes
  // themselves, with gaps of up to `gap_bytes`. `wanted` must be sorted and disjoint.
  std::vector<FileRange> missing(std::span<const FileRange> wanted,
                                 std::uint64_t gap_bytes) const noexcept;
  // Stores the absent blocks of the range, as far as there is space. As slow as the disk.
  void keep(std::uint64_t offset, const std::uint8_t* bytes, std::uint64_t count) noexcept {
    write(offset, bytes, count, false);
  }
  // Replaces the blocks of the range, which are wrong although they match their checksums. If the
  // new bytes cannot be written, this process no longer reads the old bytes.
  void replace(std::uint64_t offset, const std::uint8_t* bytes, std::uint64_t count) noexcept;

  // For readers of the mapping: announces ranges, and tells whether a byte is in memory.
  void announce(std::span<const FileRange> ranges) const noexcept;
  bool is_in_memory(std::uint64_t offset) const noexcept;

 private:
  enum class BlockState : std::uint32_t {
    unknown = 0,  // in the file: absent
    present,      // in the file
    right,        // compared by this process
    wrong,
  };
  struct alignas(8) Line {  // clang needs the alignment to read it at once
    std::uint32_t crc = 0;
    BlockState state = BlockState::unknown;
  };

  CachedObject(std::shared_ptr<const CacheSet> set, const std::string& url,
               const std::string& identity, std::uint64_t bytes,
               std::vector<std::uint64_t> block_ends);
  bool begin();
  bool make() const;
  bool is_ours(int file) const;
  int open_file(int flags) const noexcept;

  std::size_t block_of(std::uint64_t offset) const noexcept;
  FileRange range_of(std::size_t block) const noexcept;

  Line line(std::size_t block) const noexcept;
  void judge(std::size_t block, Line line) const noexcept;
  bool is_right(std::size_t block) const noexcept;
  bool is_there(std::size_t block) const noexcept;

  bool write(std::uint64_t offset, const std::uint8_t* bytes, std::uint64_t count,
             bool anew) noexcept;

  const std::shared_ptr<const CacheSet> set_;
  const std::string header_;  // empty if the names are too long
  const std::string name_;
  const std::uint64_t bytes_;
  const std::vector<std::uint64_t> block_ends_;  // empty: blocks of 64 KiB
  const std::size_t block_count_;
  const std::uint64_t bytes_begin_;  // of the object's bytes in the file
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
  void* file_mapping_ = nullptr;
  const std::uint8_t* mapping_ = nullptr;  // of the object
  // The lines that this process has compared with the bytes.
  mutable std::vector<std::atomic<Line>> lines_;
  mutable std::atomic<std::uint64_t> right_blocks_{0};
  std::atomic<bool> is_gone_{false};  // the file was removed, replaced or cut short
};

// An object that is opened at its first use. Safe from many threads, also across fork(): takes no
// lock, which a forked child could inherit, unless memory is short.
class LazyCachedObject {
 public:
  LazyCachedObject() = default;
  ~LazyCachedObject() { delete opened_.load(); }
  LazyCachedObject(const LazyCachedObject&) = delete;
  LazyCachedObject& operator=(const LazyCachedObject&) = delete;

  bool is_opened() const noexcept { return opened_.load(std::memory_order_acquire) != nullptr; }
  // Returns the object, at the first use the result of `open`, which may be null. Null if memory is
  // short. If two threads open an object, one of the two is dropped.
  template <class Open>
  const std::shared_ptr<CachedObject>& get(const Open& open) const noexcept {
    std::shared_ptr<CachedObject>* opened = opened_.load(std::memory_order_acquire);
    if (opened != nullptr) return *opened;
    auto* const mine = new (std::nothrow) std::shared_ptr<CachedObject>(open());
    if (mine == nullptr) {
      // Its first use takes a lock.
      static const NeverDestroyed<std::shared_ptr<CachedObject>> none;
      return none.value();
    }
    if (opened_.compare_exchange_strong(opened, mine, std::memory_order_acq_rel)) return *mine;
    delete mine;
    return *opened;
  }

 private:
  mutable std::atomic<std::shared_ptr<CachedObject>*> opened_{nullptr};
};

}  // namespace tfrfast
