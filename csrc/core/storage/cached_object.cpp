#include "core/storage/cached_object.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "core/base/error.h"
#include "core/base/hashing.h"
#include "core/base/warnings.h"
#include "core/crc32c/crc32c.h"
#include "core/storage/beyond_posix.h"
#include "core/storage/disk_space.h"
#include "core/storage/fault_guard.h"
#include "core/storage/folders.h"
#include "core/storage/temporary.h"

namespace tfrfast {
namespace {

// How much is counted here before it is added to what all processes have counted.
constexpr std::uint64_t kCountedAtOnce = std::uint64_t{4} << 20;
// Pages that are compared with their checksums together, aligned.
constexpr std::uint64_t kVerifiedPages = 16;

std::atomic<std::uint64_t> bytes_read{0};
std::atomic<std::size_t> open_objects{0};

// The pages that a range touches.
std::uint64_t first_page(std::uint64_t offset) noexcept {
  return offset / kCachePageBytes;
}
std::uint64_t end_page(std::uint64_t offset, std::uint64_t count) noexcept {
  return count == 0 ? first_page(offset) : (offset + count - 1) / kCachePageBytes + 1;
}

}  // namespace

std::uint64_t cache_bytes_read() noexcept {
  return bytes_read.load(std::memory_order_relaxed);
}

std::shared_ptr<CachedObject> CachedObject::open(std::shared_ptr<CacheFolder> folder,
                                                 const std::string& url,
                                                 const std::string& identity,
                                                 std::uint64_t bytes) noexcept {
  try {
    if (identity.size() > CacheTable::kMaxIdentityBytes || bytes == 0) return nullptr;
    const std::uint64_t key = fnv1a(identity);
    const std::string path = folder->folder_of(url) + "/" + CacheFolder::name_of(key);
    const std::uint64_t set = CacheFolder::set_of(url);
    folder->users().begin_use(set);
    folder->users().begin_use(key);
    std::shared_ptr<CachedObject> made(new CachedObject(std::move(folder), set, key, path, bytes));
    if (open_objects > kMaxOpen) {
      warn_once("cached objects",
                "More than " + std::to_string(kMaxOpen) +
                    " objects of caches are open in this process. The others come from the "
                    "network each time. Larger shards are fewer.");
      return nullptr;
    }
    return made->begin(url, identity) ? made : nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

CachedObject::CachedObject(std::shared_ptr<CacheFolder> folder, std::uint64_t set,
                           std::uint64_t key, std::string path, std::uint64_t bytes) noexcept
    : folder_(std::move(folder)),
      set_(set),
      key_(key),
      path_(std::move(path)),
      bytes_(bytes),
      page_count_(CacheTable::pages_of(bytes)) {
  ++open_objects;
}

CachedObject::~CachedObject() {
  if (pages_ != nullptr) {
    add_to_cache_table(pages_->words(), CacheTable::served_bytes, served_);
    add_to_cache_table(pages_->words(), CacheTable::fetched_bytes, fetched_);
  }
  folder_->users().end_use(key_);
  folder_->users().end_use(set_);
  --open_objects;
}

bool CachedObject::begin(const std::string& url, const std::string& identity) {
  folder_->remove_versions(url, key_);
  // One that cannot be used would be in the way for good.
  if (!open_table(url, identity) &&
      (!folder_->remove_damaged(url, key_) || !open_table(url, identity))) {
    return false;
  }
  ::utimensat(AT_FDCWD, (path_ + kCacheTableEnding).c_str(), nullptr, 0);  // when it was last used
  int failed = 0;
  mirror_ = MirrorFile::open(path_ + kCacheBytesEnding, bytes_, failed);
  if (failed != 0) folder_->tell_of_failure(failed);
  if (mirror_ == nullptr) return false;
  known_ = std::vector<std::atomic<std::uint64_t>>(static_cast<std::size_t>(page_count_ / 64 + 1));
  return true;
}

bool CachedObject::open_table(const std::string& url, const std::string& identity) {
  const std::size_t words = CacheTable::words_of(bytes_);
  const std::string name = path_ + kCacheTableEnding;
  std::unique_ptr<SharedWords> table = SharedWords::open(name, words);
  if (table == nullptr) {
    const std::uint64_t room = CacheTable::room_of(bytes_, folder_->block_bytes());
    if (folder_->reserve(room, room) == 0) return false;
    const std::string fresh = temporary_name(folder_->folder_of(url));
    bool is_ours = false;
    int failed = make_table(fresh, url, identity);
    // Another process may have removed the folder, with its last object, in that moment.
    if (failed == ENOENT) failed = make_table(fresh, url, identity);
    if (failed == 0) {
      // Bytes that no table knows are counted by nobody.
      const std::string mirror = path_ + kCacheBytesEnding;
      if (look_at_name(name).kind == NameKind::nothing && bytes_on_disk(mirror) > 0) {
        remove_file(mirror);
      }
      // Another process may have been faster.
      is_ours = rename_to_free_name(fresh, name) == 0;
      remove_file(fresh);
    }
    if (!is_ours) folder_->give_back(room);
    if (failed != 0) folder_->tell_of_failure(failed);
    table = SharedWords::open(name, words);
  }
  if (table == nullptr || !is_cache_table_of(*table, identity, bytes_)) return false;
  pages_ = std::make_unique<PageTable>(std::move(table));
  return true;
}

// 0, or an errno.
int CachedObject::make_table(const std::string& path, const std::string& url,
                             const std::string& identity) const {
  try {
    make_folders(folder_->folder_of(url), 0700);
  } catch (const Error& error) {
    return error.system_error();
  }
  return make_cache_table(path, url, identity, bytes_);
}

bool CachedObject::is_known(std::uint64_t page) const noexcept {
  return (known_[static_cast<std::size_t>(page / 64)].load(std::memory_order_acquire) >>
          (page % 64)) &
         1;
}

void CachedObject::know(std::uint64_t page) const noexcept {
  const std::uint64_t bit = std::uint64_t{1} << (page % 64);
  auto& word = known_[static_cast<std::size_t>(page / 64)];
  if ((word.fetch_or(bit, std::memory_order_acq_rel) & bit) == 0) ++known_pages_;
}

void CachedObject::forget(std::uint64_t page) const noexcept {
  const std::uint64_t bit = std::uint64_t{1} << (page % 64);
  auto& word = known_[static_cast<std::size_t>(page / 64)];
  if ((word.fetch_and(~bit, std::memory_order_acq_rel) & bit) != 0) --known_pages_;
}

std::size_t CachedObject::page_bytes(std::uint64_t page) const noexcept {
  return static_cast<std::size_t>(std::min(kCachePageBytes, bytes_ - page * kCachePageBytes));
}

// Whether a page that was written by anybody is right. If it is not, it is no longer there.
bool CachedObject::verify(std::uint64_t page) const noexcept {
  const auto expected = pages_->crc_of(page);
  if (!expected) return false;
  const std::uint8_t* const bytes = mirror_->mapping() + page * kCachePageBytes;
  const std::size_t count = page_bytes(page);
  std::uint32_t crc = 0;
  std::uint32_t* const out = &crc;
  if (run_guarded([=] { *out = crc32c(bytes, count); }) && crc == *expected) {
    know(page);
    return true;
  }
  pages_->drop(page, *expected);
  return false;
}

// The same for its neighbours that were not looked at. Whoever reads all of the object in any order
// has soon looked at all of it so, and a disk fetches them together.
bool CachedObject::verify_around(std::uint64_t page) const noexcept {
  if (!verify(page)) return false;
  const std::uint64_t first = page / kVerifiedPages * kVerifiedPages;
  const std::uint64_t end = std::min(first + kVerifiedPages, page_count_);
  for (std::uint64_t each = first; each < end; ++each) {
    if (!is_known(each)) verify(each);
  }
  return true;
}

std::size_t CachedObject::read(std::uint64_t offset, std::uint8_t* out,
                               std::size_t count) const noexcept {
  if (count == 0) return 0;
  const std::uint64_t first = first_page(offset), end = end_page(offset, count);
  std::uint64_t page = first;
  while (page < end && (is_known(page) || verify_around(page))) ++page;
  if (page == first) return 0;
  const auto found =
      static_cast<std::size_t>(page == end ? count : page * kCachePageBytes - offset);
  const std::uint8_t* const from = mirror_->mapping() + offset;
  if (!run_guarded([=] { std::memcpy(out, from, found); })) {
    // The file was cut short. What is left of it is looked at again.
    for (std::uint64_t each = first; each < page; ++each) {
      forget(each);
      verify(each);
    }
    return 0;
  }
  bytes_read.fetch_add(found, std::memory_order_relaxed);
  count_served(found);
  return found;
}

void CachedObject::count_served(std::uint64_t bytes) const noexcept {
  if (served_.fetch_add(bytes, std::memory_order_relaxed) + bytes < kCountedAtOnce) return;
  add_to_cache_table(pages_->words(), CacheTable::served_bytes, served_.exchange(0));
}

void CachedObject::count_fetched(std::uint64_t bytes) noexcept {
  if (fetched_.fetch_add(bytes, std::memory_order_relaxed) + bytes < kCountedAtOnce) return;
  add_to_cache_table(pages_->words(), CacheTable::fetched_bytes, fetched_.exchange(0));
}

MissingPages CachedObject::claim(std::span<const FileRange> wanted, std::uint64_t gap_bytes) {
  MissingPages missing;
  if (wanted.empty()) return missing;
  if (!was_removed_) return claim_pages(*pages_, *folder_, bytes_, wanted, gap_bytes);
  for (const FileRange& each : wanted) add_passing(*pages_, each, missing.passing);
  return missing;
}

void CachedObject::keep(std::uint64_t offset, const std::uint8_t* bytes,
                        std::uint64_t count) noexcept {
  if (folder_->is_broken() || was_removed_) return release(offset, count);
  const int failed = write_claimed(offset, bytes, count);
  if (failed == 0) return;
  release(offset, count);
  // Somebody has removed the folder, or has made the file anew. What is mapped is still right.
  if (failed == ESTALE) {
    was_removed_ = true;
  } else {
    folder_->tell_of_failure(failed);
  }
}

// 0, or an errno.
int CachedObject::write_claimed(std::uint64_t offset, const std::uint8_t* bytes,
                                std::uint64_t count) noexcept {
  const std::uint64_t end = offset + count;
  const std::uint64_t first = CacheTable::pages_of(offset);
  const std::uint64_t last = end == bytes_ ? page_count_ : end / kCachePageBytes;
  MirrorFile::Writer writer(*mirror_);
  int failed = 0;
  for (std::uint64_t page = first; page < last && failed == 0;) {
    if (!pages_->is_ours(page)) {
      ++page;
      continue;
    }
    const std::uint64_t begin = page;
    while (page < last && pages_->is_ours(page)) ++page;
    const std::uint64_t from = begin * kCachePageBytes;
    const std::uint64_t stop = std::min(page * kCachePageBytes, bytes_);
    failed = writer.write(from, bytes + (from - offset), stop - from);
    if (failed != 0) break;
    // The bytes are with the system, so nobody who reads the word finds others. Who reads them
    // compares them all the same.
    for (std::uint64_t each = begin; each < page; ++each) {
      pages_->put(each, crc32c(bytes + (each * kCachePageBytes - offset), page_bytes(each)));
    }
  }
  pay_for(writer.bytes_on_disk());
  return failed;
}

// What a filesystem needs to find the pieces of a file takes room, too. It is known afterwards.
void CachedObject::pay_for(std::uint64_t bytes_on_disk) noexcept {
  const SharedWords& table = pages_->words();
  std::uint64_t excess = table.load(CacheTable::excess_bytes);
  const std::uint64_t paid = table.load(CacheTable::room_pages) * kCachePageBytes +
                             folder_->block_bytes() - kCachePageBytes;
  if (bytes_on_disk <= paid || bytes_on_disk - paid <= excess) return;
  const std::uint64_t more = bytes_on_disk - paid - excess;
  if (table.exchange(CacheTable::excess_bytes, excess, excess + more)) folder_->charge(more);
}

void CachedObject::release(std::uint64_t offset, std::uint64_t count) noexcept {
  const std::uint64_t end = end_page(offset, count);
  for (std::uint64_t page = first_page(offset); page < end; ++page) pages_->release(page);
}

bool CachedObject::is_awaited(std::uint64_t offset, std::uint64_t count) const noexcept {
  const std::uint64_t end = end_page(offset, count);
  for (std::uint64_t page = first_page(offset); page < end; ++page) {
    if (pages_->is_awaited(page)) return true;
  }
  return false;
}

bool CachedObject::check_again(std::uint64_t offset, std::uint64_t count) noexcept {
  if (count == 0 || offset >= bytes_) return false;
  const std::uint64_t end = end_page(offset, std::min(count, bytes_ - offset));
  bool all_right = true;
  for (std::uint64_t page = first_page(offset); page < end; ++page) {
    if (is_known(page) && verify(page)) continue;
    forget(page);
    all_right = false;
  }
  return !all_right;
}

const StoredFile* CachedObject::whole() const noexcept {
  return known_pages_.load(std::memory_order_acquire) == page_count_ ? &mirror_->file() : nullptr;
}

}  // namespace tfrfast
