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
  // `identity` names the object and its version. Null if there is no room for its table.
  static std::shared_ptr<CachedObject> open(std::shared_ptr<CacheFolder> folder,
                                            const std::string& url, const std::string& identity,
                                            std::uint64_t bytes) noexcept;
  ~CachedObject();
  CachedObject(const CachedObject&) = delete;
  CachedObject& operator=(const CachedObject&) = delete;

  // Copies as many of the bytes from `offset` on as are there and have the right checksums.
  std::size_t read(std::uint64_t offset, std::uint8_t* out, std::size_t count) const noexcept;

  // What has to be asked for. Pages in `claimed` are this process's to fetch, for everybody; after
  // keep() or release() they no longer are. There is no room for `passing`. What is in neither is
  // there already, or being fetched.
  struct Missing {
    std::vector<FileRange> claimed;
    std::vector<FileRange> passing;
  };
  // `wanted` is sorted and does not overlap. Gaps of up to `gap_bytes` are fetched along.
  Missing claim(std::span<const FileRange> wanted, std::uint64_t gap_bytes);
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
  const StoredFile& mirror() const noexcept { return *mirror_; }

 private:
  CachedObject(std::shared_ptr<CacheFolder> folder, std::uint64_t set, std::uint64_t key,
               std::string path, std::uint64_t bytes) noexcept;

  bool begin(const std::string& url, const std::string& identity);
  bool open_table(const std::string& url, const std::string& identity);
  int make_table(const std::string& path, const std::string& url,
                 const std::string& identity) const;
  bool open_mirror(const std::string& mirror);
  int open_mapped_mirror() const noexcept;
  void add_passing(const FileRange& wanted, Missing& missing) const;
  bool is_known(std::uint64_t page) const noexcept;
  void know(std::uint64_t page) const noexcept;
  void forget(std::uint64_t page) const noexcept;
  bool verify(std::uint64_t page) const noexcept;
  std::size_t page_bytes(std::uint64_t page) const noexcept;
  bool can_be_claimed(std::uint64_t page) const noexcept;
  bool claim_page(std::uint64_t page, std::uint64_t& granted) noexcept;
  void claim_run(std::uint64_t first, std::uint64_t last, Missing& missing);

  const std::shared_ptr<CacheFolder> folder_;
  const std::uint64_t set_;
  const std::uint64_t key_;
  const std::string path_;  // without its ending
  const std::uint64_t bytes_;
  const std::uint64_t pages_;
  std::unique_ptr<SharedWords> table_;
  std::shared_ptr<const StoredFile> mirror_;
  // The file that is mapped. Its name may be another's by now, if somebody has removed the folder.
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
  std::atomic<bool> was_removed_{false};
  // Pages that are there, and whose checksums this process has compared.
  mutable std::vector<std::atomic<std::uint64_t>> known_;
  mutable std::atomic<std::uint64_t> known_pages_{0};
};

}  // namespace tfrfast
