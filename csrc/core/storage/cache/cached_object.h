// What a cache keeps of one version of an object, or of anything else that has a name and never
// changes. cache_folder.h says how it lies on the disk.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/storage/cache/cache_file.h"
#include "core/storage/cache/cache_folder.h"
#include "core/storage/cache/cache_log.h"
#include "core/storage/cache/page_claims.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// How many bytes this process has read from caches, where they are not mapped.
std::uint64_t cache_bytes_read() noexcept;

// What has to be asked for. Pages in `claimed` are this process's to fetch, for everybody. What is
// in `passing` is not kept: there is no space for it. What is in neither is there by now, or is
// being fetched.
struct MissingPages {
  std::vector<FileRange> claimed;
  std::vector<FileRange> passing;
};

// Safe from many threads. Processes share the file, each with a CachedObject of its own. A page
// that was written is written again only after it was found to be wrong.
//
// Nothing here fails: what cannot be kept, or cannot be read, has to come from elsewhere. No lock
// is held while bytes are read, and a forked child goes on with what it has.
class CachedObject {
 public:
  // Each takes a mapping, and a process may have only so many. On Linux they are 65,530, unless its
  // administrator allows more; files of this machine take up to kMaxMappings.
  static constexpr std::size_t kMaxOpen = 24 << 10;

  // `identity` names the object and its version. Whatever the cache has under the same URL that is
  // of another identity is removed. Null if there is no space for the file, or if kMaxOpen are
  // open, of which there is a warning.
  static std::shared_ptr<CachedObject> open(std::shared_ptr<const CacheSet> set,
                                            const std::string& url, const std::string& identity,
                                            std::uint64_t bytes) noexcept;
  ~CachedObject();
  CachedObject(const CachedObject&) = delete;
  CachedObject& operator=(const CachedObject&) = delete;

  // Copies as many of the bytes from `offset` on as are there and match their checksums.
  std::size_t read(std::uint64_t offset, std::uint8_t* out, std::size_t count) const noexcept;
  // The whole object as a mapping, once all of it is there and was compared; null before. It lives
  // as long as this.
  const std::uint8_t* whole() const noexcept;

  // What has to be asked for. Pages in `claimed` are this process's until keep() or release(), but
  // for half a minute at most. `wanted` is sorted and does not overlap. Gaps of up to `gap_bytes`
  // are fetched along.
  MissingPages claim(std::span<const FileRange> wanted, std::uint64_t gap_bytes) noexcept;
  // Stores the pages of the range that are not there yet. Takes as long as the disk does.
  void keep(std::uint64_t offset, const std::uint8_t* bytes, std::uint64_t count) noexcept;
  void release(std::uint64_t offset, std::uint64_t count) noexcept;
  // Whether any page of the range is not there and is being fetched by a process that lives.
  bool is_awaited(std::uint64_t offset, std::uint64_t count) const noexcept;

  // What is there of the range is wrong, although it matches its checksum: these bytes replace it.
  // Where they cannot be written, this process no longer reads what is there. The range begins and
  // ends where blocks do, or the object does.
  void replace(std::uint64_t offset, const std::uint8_t* bytes, std::uint64_t count) noexcept;

  // For whoever reads the mapping: advice, and whether a byte is in memory.
  void announce(std::span<const FileRange> ranges) const noexcept;
  bool is_in_memory(std::uint64_t offset) const noexcept;

  // What was read of whole() elsewhere, and what has come from the network: for people to see.
  void count_served(std::uint64_t bytes) const noexcept { count(bytes, 0); }
  void count_fetched(std::uint64_t bytes) noexcept { count(0, bytes); }

 private:
  // The state of a block in one word: a checksum, the pages that are there, and those of them that
  // this process has compared.
  struct Block {
    std::uint32_t crc = 0;
    PageMask present = 0;
    PageMask known = 0;
  };
  CachedObject(std::shared_ptr<const CacheSet> set, const CacheHeader& header);
  bool begin();

  Block block(std::uint64_t number) const noexcept;
  bool exchange(std::uint64_t number, Block& expected, Block desired) const noexcept;
  void forget_known(std::uint64_t number) const noexcept;
  void verify(std::uint64_t number) const noexcept;
  bool is_there(std::uint64_t page) const noexcept;
  bool is_known(std::uint64_t page) const noexcept;
  PageMask pages_of_block(std::uint64_t number) const noexcept;
  std::uint64_t bytes_of_pages(std::uint64_t first, std::uint64_t end) const noexcept;

  // Reads the lines that were appended since. Call it with cache_mutex() held.
  void refresh(const FileDescriptor& file) const noexcept;
  void take_line(const CacheLine& line) const;
  std::vector<FileRange> spans_around(std::span<const FileRange> wanted,
                                      std::uint64_t gap_bytes) const;
  // Call these with cache_mutex() held.
  std::vector<CacheLine> lines_to_claim(std::span<const FileRange> spans,
                                        std::span<const FileRange> wanted,
                                        std::uint64_t space_pages) const;
  void add_own(const CacheLine& claim, std::vector<FileRange>& claimed) const;
  void add_passing(const FileRange& wanted, std::vector<FileRange>& passing) const;

  int write_pages(const FileDescriptor& file, std::uint64_t offset, const std::uint8_t* bytes,
                  std::uint64_t count, bool only_missing) noexcept;
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
  // What is not in the log yet.
  mutable std::atomic<std::uint64_t> served_{0};
  mutable std::atomic<std::uint64_t> fetched_{0};
};

}  // namespace tfrfast
