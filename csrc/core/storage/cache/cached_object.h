// One version of an object in a cache. The object may be anything with a name that never changes.
// cache_folder.h describes the files.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/storage/cache/cache_file.h"
#include "core/storage/cache/page_claims.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// The bytes that this process has read from caches, without mapped bytes.
std::uint64_t cache_bytes_read() noexcept;

// The bytes to request. This process fetches the pages in `claimed`, for all processes. Bytes in
// `passing` are not kept, because the cache has no space. All other bytes are present or being
// fetched.
struct MissingPages {
  std::vector<FileRange> claimed;
  std::vector<FileRange> passing;
};

// Safe from many threads. Processes share the file, each with its own CachedObject. A page is
// written again only if it was found to be wrong.
//
// No function fails: bytes that cannot be kept or read have to come from elsewhere. No lock is held
// while bytes are read. A forked child continues with the parent's state.
class CachedObject {
 public:
  // Each object takes a mapping, and a process may have only so many: 65,530 on Linux, unless the
  // administrator allows more. Local files take up to kMaxMappings.
  static constexpr std::size_t kMaxOpen = 24 << 10;

  // `identity` names the object and its version. A file of another identity under the same URL is
  // removed. Null if the disk has no space for the file, or if kMaxOpen objects are open, with a
  // warning.
  static std::shared_ptr<CachedObject> open(std::shared_ptr<const CacheSet> set,
                                            const std::string& url, const std::string& identity,
                                            std::uint64_t bytes) noexcept;
  ~CachedObject();
  CachedObject(const CachedObject&) = delete;
  CachedObject& operator=(const CachedObject&) = delete;

  // Copies bytes from `offset` on as far as they are present and match their checksums. Returns
  // their number.
  std::size_t read(std::uint64_t offset, std::uint8_t* out, std::size_t count) const noexcept;
  // Whether the whole range is present, as far as this process knows.
  bool has(std::uint64_t offset, std::uint64_t count) const noexcept;
  // The whole object as a mapping, once all of it is present and verified. Null before. The mapping
  // lives as long as this object.
  const std::uint8_t* whole() const noexcept;

  // Returns the bytes to request. This process owns the pages in `claimed` until keep() or
  // release(), for half a minute at most. `wanted` must be sorted and disjoint. Gaps of up to
  // `gap_bytes` are fetched, too.
  MissingPages claim(std::span<const FileRange> wanted, std::uint64_t gap_bytes) noexcept;
  // Stores the absent pages of the range. As slow as the disk.
  void keep(std::uint64_t offset, const std::uint8_t* bytes, std::uint64_t count) noexcept;
  void release(std::uint64_t offset, std::uint64_t count) noexcept;
  // Whether a live process is fetching an absent page of the range.
  bool is_awaited(std::uint64_t offset, std::uint64_t count) const noexcept;

  // Replaces present bytes of the range, which are wrong although they match their checksum. If the
  // new bytes cannot be written, this process no longer reads the old bytes. The range must begin
  // and end at a block's boundary or at the object's end.
  void replace(std::uint64_t offset, const std::uint8_t* bytes, std::uint64_t count) noexcept;

  // For readers of the mapping: announces ranges, and tells whether a byte is in memory.
  void announce(std::span<const FileRange> ranges) const noexcept;
  bool is_in_memory(std::uint64_t offset) const noexcept;

  // Counts bytes read from whole(), and bytes fetched from the network, for statistics.
  void count_served(std::uint64_t bytes) const noexcept { count(bytes, 0); }
  void count_fetched(std::uint64_t bytes) noexcept { count(0, bytes); }

 private:
  // The state of a block in one word: a checksum, the present pages, and the present pages that
  // this process has verified.
  struct Block {
    std::uint32_t crc = 0;
    PageMask present = 0;
    PageMask known = 0;
  };
  CachedObject(std::shared_ptr<const CacheSet> set, const std::string& url,
               const std::string& identity, std::uint64_t bytes);
  bool begin();

  Block block(std::uint64_t number) const noexcept;
  template <class Change>
  void change(std::uint64_t number, const Change& change) const noexcept;
  void verify(std::uint64_t number) const noexcept;
  bool is_there(std::uint64_t page) const noexcept;
  bool is_known(std::uint64_t page) const noexcept;
  PageMask pages_of_block(std::uint64_t number) const noexcept;
  std::uint64_t bytes_of_pages(std::uint64_t first, std::uint64_t end) const noexcept;

  // Reads the lines appended since the last call. Call with cache_mutex() held.
  void refresh(const FileDescriptor& file) const noexcept;
  void take_line(const CacheLine& line) const;
  std::vector<FileRange> spans_around(std::span<const FileRange> wanted,
                                      std::uint64_t gap_bytes) const;
  // Call the next two with cache_mutex() held.
  std::vector<CacheLine> lines_to_claim(std::span<const FileRange> spans,
                                        std::span<const FileRange> wanted,
                                        std::uint64_t space_pages) const;
  PageMask there_or_coming(std::uint64_t number) const noexcept;

  bool write_pages(std::uint64_t offset, const std::uint8_t* bytes, std::uint64_t count,
                   bool only_missing) noexcept;
  void count(std::uint64_t served, std::uint64_t fetched) const noexcept;
  void write_counts() const noexcept;

  mutable CacheFile file_;
  const std::uint64_t bytes_;
  const std::uint64_t page_count_;
  void* file_mapping_ = nullptr;
  const std::uint8_t* mapping_ = nullptr;  // of the object
  mutable std::vector<std::atomic<std::uint64_t>> blocks_;
  mutable std::atomic<std::uint64_t> whole_blocks_{0};
  mutable PageClaims claims_;  // guarded by cache_mutex()
  // Not yet in the log.
  mutable std::atomic<std::uint64_t> served_{0};
  mutable std::atomic<std::uint64_t> fetched_{0};
};

}  // namespace tfrfast
