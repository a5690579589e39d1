// What a cache keeps of one object: a sparse file of the object's size, and a table that says which
// of its pages are there, with their checksums.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/storage/cache_folder.h"
#include "core/storage/mirror_file.h"
#include "core/storage/page_claims.h"
#include "core/storage/page_table.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// How many bytes this process has read from caches, where they are not mapped.
std::uint64_t cache_bytes_read() noexcept;

// Safe from many threads. Processes share the files, each with its own CachedObject. A page that
// was written is never written again, except after it was found to be damaged.
//
// Nothing here fails: what cannot be kept, or cannot be read, comes from the network.
class CachedObject {
 public:
  // Each takes two mappings, and a process may have only so many. On Linux they are 65,530, unless
  // its administrator allows more; files of this machine take up to kMaxMappings.
  static constexpr std::size_t kMaxOpen = 24 << 10;

  // `identity` names the object and its version. Null if there is no room for its table, or if
  // kMaxOpen are open, of which there is a warning.
  static std::shared_ptr<CachedObject> open(std::shared_ptr<CacheFolder> folder,
                                            const std::string& url, const std::string& identity,
                                            std::uint64_t bytes) noexcept;
  ~CachedObject();
  CachedObject(const CachedObject&) = delete;
  CachedObject& operator=(const CachedObject&) = delete;

  // Copies as many of the bytes from `offset` on as are there and have the right checksums.
  std::size_t read(std::uint64_t offset, std::uint8_t* out, std::size_t count) const noexcept;

  // What has to be asked for. Pages in `claimed` are this process's until keep() or release().
  // `wanted` is sorted and does not overlap. Gaps of up to `gap_bytes` are fetched along.
  MissingPages claim(std::span<const FileRange> wanted, std::uint64_t gap_bytes);
  // Stores those pages of the range that this process has claimed. Takes as long as the disk does.
  void keep(std::uint64_t offset, const std::uint8_t* bytes, std::uint64_t count) noexcept;
  void release(std::uint64_t offset, std::uint64_t count) noexcept;
  // Whether any page of the range is being fetched by a process that lives.
  bool is_awaited(std::uint64_t offset, std::uint64_t count) const noexcept;

  // Compares the range with its checksums again. False if all of it was known and is right. True if
  // it should be read once more: something was wrong, and is no longer there, or somebody else has
  // put it right meanwhile, or it was never there.
  bool check_again(std::uint64_t offset, std::uint64_t count) noexcept;

  // The object as a local file once all of it is there and right; null before.
  const StoredFile* whole() const noexcept;
  // The file that holds its pages, where they belong. Others are holes.
  const StoredFile& mirror() const noexcept { return mirror_->file(); }

  // What was read of whole() elsewhere, and what has come from the network: for people to see.
  void count_served(std::uint64_t bytes) const noexcept;
  void count_fetched(std::uint64_t bytes) noexcept;

 private:
  CachedObject(std::shared_ptr<CacheFolder> folder, std::uint64_t set, std::uint64_t key,
               std::string path, std::uint64_t bytes) noexcept;

  bool begin(const std::string& url, const std::string& identity);
  bool open_table(const std::string& url, const std::string& identity);
  int make_table(const std::string& path, const std::string& url,
                 const std::string& identity) const;
  bool is_known(std::uint64_t page) const noexcept;
  void know(std::uint64_t page) const noexcept;
  void forget(std::uint64_t page) const noexcept;
  bool verify(std::uint64_t page) const noexcept;
  bool verify_around(std::uint64_t page) const noexcept;
  std::size_t page_bytes(std::uint64_t page) const noexcept;
  int write_claimed(std::uint64_t offset, const std::uint8_t* bytes, std::uint64_t count) noexcept;
  void pay_for(std::uint64_t bytes_on_disk) noexcept;

  const std::shared_ptr<CacheFolder> folder_;
  const std::uint64_t set_;
  const std::uint64_t key_;
  const std::string path_;  // without its ending
  const std::uint64_t bytes_;
  const std::uint64_t page_count_;
  std::unique_ptr<PageTable> pages_;
  std::unique_ptr<const MirrorFile> mirror_;
  std::atomic<bool> was_removed_{false};
  // Pages that are there, and whose checksums this process has compared.
  mutable std::vector<std::atomic<std::uint64_t>> known_;
  mutable std::atomic<std::uint64_t> known_pages_{0};
  // What is not in the table yet, where all processes add to it.
  mutable std::atomic<std::uint64_t> served_{0};
  std::atomic<std::uint64_t> fetched_{0};
};

}  // namespace tfrfast
