#include "core/storage/cached_object.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "core/base/error.h"
#include "core/base/hashing.h"
#include "core/base/process.h"
#include "core/crc32c/crc32c.h"
#include "core/storage/beyond_posix.h"
#include "core/storage/fault_guard.h"
#include "core/storage/folders.h"
#include "core/storage/local_file.h"

namespace tfrfast {
namespace {

// The word of a page. Its low two bits say what the rest is.
enum PageState : std::uint64_t {
  kAbsent,    // the whole word is 0: no room is taken
  kReserved,  // there is room for it
  kClaimed,   // 30 bits of time and 32 of a process: who fetches it, and since when
  kPresent,   // a CRC-32C in the upper half
};
constexpr std::uint64_t kStateBits = 3;
constexpr std::uint64_t kTimeBits = (std::uint64_t{1} << 30) - 1;

// A request that takes longer may be made by somebody else, too.
constexpr std::uint64_t kMaxClaimTicks = 30 * 4;
// Where the whole set fits, or for a small record, this much is fetched at once, aligned. It is
// fetched once in either case. For large records of a set that does not fit, whole records are
// worth more than parts of many.
constexpr std::uint64_t kNeighbourPages = 16;
constexpr std::uint64_t kSmallRange = 16 << 10;

std::atomic<std::uint64_t> bytes_read{0};

PageState state_of(std::uint64_t word) noexcept {
  return static_cast<PageState>(word & kStateBits);
}

// Quarters of a second, by a clock that all processes share.
std::uint64_t now_ticks() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
             std::chrono::duration_cast<std::chrono::milliseconds>(now).count() / 250) &
         kTimeBits;
}

std::uint64_t this_process() noexcept {
  return static_cast<std::uint32_t>(process_number());
}

bool is_ours(std::uint64_t word) noexcept {
  return state_of(word) == kClaimed && word >> 32 == this_process();
}

bool is_awaited_claim(std::uint64_t word) noexcept {
  if (state_of(word) != kClaimed) return false;
  const std::uint64_t age = (now_ticks() - (word >> 2)) & kTimeBits;
  if (age > kMaxClaimTicks) return false;
  return ::kill(static_cast<pid_t>(word >> 32), 0) == 0 || errno != ESRCH;
}

int write_all(int descriptor, const std::uint8_t* bytes, std::uint64_t count,
              std::uint64_t offset) noexcept {
  while (count > 0) {
    const ssize_t put = ::pwrite(descriptor, bytes, count, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    if (put == 0) return ENOSPC;
    bytes += put;
    offset += static_cast<std::uint64_t>(put);
    count -= static_cast<std::uint64_t>(put);
  }
  return 0;
}

void put_text(const SharedWords& table, const std::string& text) {
  for (std::size_t i = 0; i < text.size(); i += 8) {
    std::uint64_t word = 0;
    for (std::size_t j = 0; j < 8 && i + j < text.size(); ++j) {
      word |= std::uint64_t{static_cast<std::uint8_t>(text[i + j])} << (8 * j);
    }
    table.store(CacheTable::text + i / 8, word);
  }
}

// A name in the same folder that no other file has.
std::string fresh_name(const std::string& path) {
  static std::atomic<std::uint64_t> number{0};
  return path + "." + std::to_string(this_process()) + "." + std::to_string(number++) + ".new";
}

bool has_text(const SharedWords& table, const std::string& text) {
  if (table.load(CacheTable::identity_bytes) != text.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::uint64_t word = table.load(CacheTable::text + i / 8);
    if (static_cast<char>(word >> (8 * (i % 8))) != text[i]) return false;
  }
  return true;
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
    folder->begin_use(set);
    folder->begin_use(key);
    std::shared_ptr<CachedObject> made(new CachedObject(std::move(folder), set, key, path, bytes));
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
      pages_(CacheTable::pages_of(bytes)) {}

CachedObject::~CachedObject() {
  folder_->end_use(key_);
  folder_->end_use(set_);
}

bool CachedObject::begin(const std::string& url, const std::string& identity) {
  folder_->remove_versions(url, key_);
  // One that cannot be used would be in the way for good.
  if (!open_table(url, identity) &&
      (!folder_->remove_damaged(url, key_) || !open_table(url, identity))) {
    return false;
  }
  ::utimensat(AT_FDCWD, (path_ + ".pages").c_str(), nullptr, 0);  // when it was last used
  if (!open_mirror(path_ + ".bytes")) return false;
  known_ = std::vector<std::atomic<std::uint64_t>>(static_cast<std::size_t>(pages_ / 64 + 1));
  return true;
}

bool CachedObject::open_table(const std::string& url, const std::string& identity) {
  const std::size_t words = CacheTable::words_of(bytes_);
  const std::string table = path_ + ".pages";
  table_ = SharedWords::open(table, words);
  if (table_ == nullptr) {
    const std::uint64_t room = CacheTable::room_of(bytes_);
    if (folder_->reserve(room, room) == 0) return false;
    const std::string fresh = fresh_name(path_);
    bool is_ours = false;
    int failed = make_table(fresh, url, identity);
    // Another process may have removed the folder, with its last object, in that moment.
    if (failed == ENOENT) failed = make_table(fresh, url, identity);
    if (failed == 0) {
      // Bytes that no table knows are counted by nobody.
      const std::string mirror = path_ + ".bytes";
      struct stat status;
      if (::lstat(table.c_str(), &status) != 0 && ::lstat(mirror.c_str(), &status) == 0 &&
          status.st_blocks > 0) {
        ::unlink(mirror.c_str());
      }
      // Another process may have been faster.
      is_ours = rename_to_free_name(fresh, table) == 0;
      ::unlink(fresh.c_str());
    }
    if (!is_ours) folder_->give_back(room);
    if (failed != 0) folder_->tell_of_failure(failed);
    table_ = SharedWords::open(table, words);
  }
  return table_ != nullptr && table_->load(CacheTable::magic) == CacheTable::kMagic &&
         table_->load(CacheTable::object_bytes) == bytes_ && has_text(*table_, identity);
}

// 0, or an errno.
int CachedObject::make_table(const std::string& path, const std::string& url,
                             const std::string& identity) const {
  const std::size_t words = CacheTable::words_of(bytes_);
  try {
    make_folders(folder_->folder_of(url), 0700);
  } catch (const Error& error) {
    return error.system_error();
  }
  if (const int failed = SharedWords::make(path, words); failed != 0) return failed;
  const auto table = SharedWords::open(path, words);
  if (table == nullptr) {
    ::unlink(path.c_str());
    return ENOMEM;
  }
  table->store(CacheTable::object_bytes, bytes_);
  table->store(CacheTable::url_bytes, url.size());
  table->store(CacheTable::identity_bytes, identity.size());
  put_text(*table, identity);
  table->store(CacheTable::magic, CacheTable::kMagic);
  return 0;
}

// Maps the file of the bytes, which is made if it is not there.
bool CachedObject::open_mirror(const std::string& mirror) {
  int file = ::open(mirror.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  struct stat opened = {};
  if (file >= 0 && ::fstat(file, &opened) != 0) opened.st_size = -1;
  if (file < 0 ? errno == ENOENT : static_cast<std::uint64_t>(opened.st_size) != bytes_) {
    // Never lengthened: a process that reads it now would find zeros instead of the file's end.
    const bool is_damaged = file >= 0;
    if (is_damaged) ::close(file);
    const std::string fresh = fresh_name(path_);
    file = ::open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int failed = file < 0 ? errno : 0;
    if (failed == 0 && ::ftruncate(file, static_cast<off_t>(bytes_)) != 0) failed = errno;
    if (file >= 0) ::close(file);
    if (failed == 0) {
      const int renamed =
          is_damaged ? ::rename(fresh.c_str(), mirror.c_str()) : rename_to_free_name(fresh, mirror);
      if (renamed != 0 && errno != EEXIST) failed = errno;
    }
    ::unlink(fresh.c_str());
    if (failed != 0) return folder_->tell_of_failure(failed), false;
    file = ::open(mirror.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file >= 0 && ::fstat(file, &opened) != 0) opened.st_size = -1;
  }
  if (file < 0) return false;
  bool is_mapped = false;
  try {
    mirror_ = open_local_file(mirror, IoMode::mapped);
    // What has the name now had it all the time, as `file` keeps its number from being used again.
    struct stat now;
    is_mapped = mirror_->mapping() != nullptr && mirror_->bytes() == bytes_ &&
                ::stat(mirror.c_str(), &now) == 0 && now.st_dev == opened.st_dev &&
                now.st_ino == opened.st_ino;
  } catch (const std::exception&) {
    // Somebody has removed it.
  }
  ::close(file);
  device_ = static_cast<std::uint64_t>(opened.st_dev);
  inode_ = static_cast<std::uint64_t>(opened.st_ino);
  return is_mapped;
}

// Opens the file that is mapped, to write to it. -1 and errno; ESTALE if its name is another's now.
int CachedObject::open_mapped_mirror() const noexcept {
  const int file = ::open((path_ + ".bytes").c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return errno = errno == ENOENT || errno == ENOTDIR ? ESTALE : errno, -1;
  struct stat status;
  if (::fstat(file, &status) == 0 && static_cast<std::uint64_t>(status.st_dev) == device_ &&
      static_cast<std::uint64_t>(status.st_ino) == inode_ && status.st_nlink > 0 &&
      static_cast<std::uint64_t>(status.st_size) == bytes_) {
    return file;
  }
  ::close(file);
  return errno = ESTALE, -1;
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
  std::uint64_t word = table_->load(CacheTable::kHeaderWords + static_cast<std::size_t>(page));
  if (state_of(word) != kPresent) return false;
  const std::uint8_t* const bytes = mirror_->mapping() + page * kCachePageBytes;
  const std::size_t count = page_bytes(page);
  std::uint32_t crc = 0;
  std::uint32_t* const out = &crc;
  if (run_guarded([=] { *out = crc32c(bytes, count); }) && crc == word >> 32) {
    know(page);
    return true;
  }
  table_->exchange(CacheTable::kHeaderWords + static_cast<std::size_t>(page), word, kReserved);
  return false;
}

std::size_t CachedObject::read(std::uint64_t offset, std::uint8_t* out,
                               std::size_t count) const noexcept {
  if (count == 0) return 0;
  const std::uint64_t first = offset / kCachePageBytes;
  const std::uint64_t last = (offset + count - 1) / kCachePageBytes;
  std::uint64_t page = first;
  while (page <= last && (is_known(page) || verify(page))) ++page;
  if (page == first) return 0;
  const auto found =
      static_cast<std::size_t>(page > last ? count : page * kCachePageBytes - offset);
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
  return found;
}

bool CachedObject::can_be_claimed(std::uint64_t page) const noexcept {
  const std::uint64_t word =
      table_->load(CacheTable::kHeaderWords + static_cast<std::size_t>(page));
  return state_of(word) != kPresent && !is_awaited_claim(word);
}

// `granted` is room that was taken and is not used yet.
bool CachedObject::claim_page(std::uint64_t page, std::uint64_t& granted) noexcept {
  const std::size_t at = CacheTable::kHeaderWords + static_cast<std::size_t>(page);
  std::uint64_t word = table_->load(at);
  while (state_of(word) != kPresent && !is_awaited_claim(word)) {
    const bool takes_room = word == 0;
    if (takes_room && granted == 0) return false;
    const std::uint64_t claim = this_process() << 32 | now_ticks() << 2 | kClaimed;
    if (!table_->exchange(at, word, claim)) {
      if (word == 0) return false;  // the table cannot be read
      continue;
    }
    if (takes_room) granted -= kCachePageBytes;
    return true;
  }
  return false;
}

// Claims the pages from `first` to `last`, which could be claimed when they were looked at.
void CachedObject::claim_run(std::uint64_t first, std::uint64_t last, Missing& missing) {
  std::uint64_t without_room = 0;
  for (std::uint64_t page = first; page <= last; ++page) {
    without_room += table_->load(CacheTable::kHeaderWords + static_cast<std::size_t>(page)) == 0;
  }
  std::uint64_t granted =
      without_room == 0 ? 0 : folder_->reserve(without_room * kCachePageBytes, kCachePageBytes);
  for (std::uint64_t page = first; page <= last;) {
    if (!claim_page(page, granted)) {
      ++page;
      continue;
    }
    const std::uint64_t begin = page++;
    while (page <= last && claim_page(page, granted)) ++page;
    const std::uint64_t end = std::min(page * kCachePageBytes, bytes_);
    missing.claimed.push_back({begin * kCachePageBytes, end - begin * kCachePageBytes});
  }
  if (granted > 0) folder_->give_back(granted);
}

CachedObject::Missing CachedObject::claim(std::span<const FileRange> wanted,
                                          std::uint64_t gap_bytes) {
  Missing missing;
  if (wanted.empty()) return missing;
  if (was_removed_) {
    for (const FileRange& each : wanted) add_passing(each, missing);
    return missing;
  }
  const bool fits = folder_->fits();
  // Runs of pages that can be claimed, each of which begins and ends with one that is wanted.
  std::uint64_t run_first = 0, run_last = 0, next = 0;
  bool has_run = false, is_run_wanted = false;
  const auto finish = [&] {
    if (has_run && is_run_wanted) claim_run(run_first, run_last, missing);
    has_run = is_run_wanted = false;
  };
  for (const FileRange& each : wanted) {
    if (each.bytes == 0) continue;
    const std::uint64_t around = fits || each.bytes <= kSmallRange ? kNeighbourPages : 1;
    std::uint64_t first = each.offset / kCachePageBytes / around * around;
    const std::uint64_t last =
        std::min(((each.offset + each.bytes - 1) / kCachePageBytes / around + 1) * around, pages_) -
        1;
    first = std::max(first, next);
    const std::uint64_t first_wanted = each.offset / kCachePageBytes;
    const std::uint64_t last_wanted = (each.offset + each.bytes - 1) / kCachePageBytes;
    for (std::uint64_t page = first; page <= last; ++page) {
      if (!can_be_claimed(page)) {
        finish();
        continue;
      }
      if (has_run && page != run_last + 1) {
        bool bridges = (page - run_last - 1) * kCachePageBytes <= gap_bytes;
        for (std::uint64_t gap = run_last + 1; bridges && gap < page; ++gap) {
          bridges = can_be_claimed(gap);
        }
        if (!bridges) finish();
      }
      if (!has_run) run_first = page;
      has_run = true;
      is_run_wanted = is_run_wanted || (page >= first_wanted && page <= last_wanted);
      run_last = page;
    }
    next = std::max(next, last + 1);
  }
  finish();
  // Others have claimed the middle of a run meanwhile, or there was no room for it. Its ends would
  // be fetched for nobody.
  std::erase_if(missing.claimed, [&](const FileRange& claimed) {
    const auto after = std::partition_point(
        wanted.begin(), wanted.end(),
        [&](const FileRange& each) { return each.offset + each.bytes <= claimed.offset; });
    const bool is_wanted = after != wanted.end() && after->offset < claimed.offset + claimed.bytes;
    if (!is_wanted) release(claimed.offset, claimed.bytes);
    return !is_wanted;
  });
  for (const FileRange& each : wanted) add_passing(each, missing);
  return missing;
}

// What there is no room for is asked for as it is wanted, and nothing else.
void CachedObject::add_passing(const FileRange& wanted, Missing& missing) const {
  const std::uint64_t end = wanted.offset + wanted.bytes;
  for (std::uint64_t at = wanted.offset; at < end;) {
    const std::uint64_t page = at / kCachePageBytes;
    const std::uint64_t stop = std::min(end, (page + 1) * kCachePageBytes);
    if (can_be_claimed(page)) {
      if (!missing.passing.empty() &&
          missing.passing.back().offset + missing.passing.back().bytes == at) {
        missing.passing.back().bytes += stop - at;
      } else {
        missing.passing.push_back({at, stop - at});
      }
    }
    at = stop;
  }
}

void CachedObject::keep(std::uint64_t offset, const std::uint8_t* bytes,
                        std::uint64_t count) noexcept {
  const std::uint64_t end = offset + count;
  const std::uint64_t first = CacheTable::pages_of(offset);
  const std::uint64_t last = end == bytes_ ? pages_ : end / kCachePageBytes;
  if (folder_->is_broken() || was_removed_) return release(offset, count);
  int file = -1;
  int failed = 0;
  for (std::uint64_t page = first; page < last && failed == 0;) {
    const auto at = [](std::uint64_t which) {
      return CacheTable::kHeaderWords + static_cast<std::size_t>(which);
    };
    if (!is_ours(table_->load(at(page)))) {
      ++page;
      continue;
    }
    const std::uint64_t begin = page;
    while (page < last && is_ours(table_->load(at(page)))) ++page;
    if (file < 0) file = open_mapped_mirror();
    if (file < 0) {
      failed = errno;
      break;
    }
    const std::uint64_t from = begin * kCachePageBytes;
    const std::uint64_t stop = std::min(page * kCachePageBytes, bytes_);
    failed = write_all(file, bytes + (from - offset), stop - from, from);
    if (failed != 0) break;
    // The bytes are with the system, so nobody who reads the word finds others. Who reads them
    // compares them all the same.
    for (std::uint64_t each = begin; each < page; ++each) {
      const std::uint32_t crc = crc32c(bytes + (each * kCachePageBytes - offset), page_bytes(each));
      table_->store(at(each), std::uint64_t{crc} << 32 | kPresent);
    }
  }
  if (file >= 0) ::close(file);
  if (failed == 0) return;
  release(offset, count);
  // Somebody has removed the folder, or has made the file anew. What is mapped is still right.
  if (failed == ESTALE) {
    was_removed_ = true;
  } else {
    folder_->tell_of_failure(failed);
  }
}

void CachedObject::release(std::uint64_t offset, std::uint64_t count) noexcept {
  if (count == 0) return;
  const std::uint64_t last = (offset + count - 1) / kCachePageBytes;
  for (std::uint64_t page = offset / kCachePageBytes; page <= last; ++page) {
    const std::size_t at = CacheTable::kHeaderWords + static_cast<std::size_t>(page);
    std::uint64_t word = table_->load(at);
    if (is_ours(word)) table_->exchange(at, word, kReserved);
  }
}

bool CachedObject::is_awaited(std::uint64_t offset, std::uint64_t count) const noexcept {
  if (count == 0) return false;
  const std::uint64_t last = (offset + count - 1) / kCachePageBytes;
  for (std::uint64_t page = offset / kCachePageBytes; page <= last; ++page) {
    if (is_awaited_claim(table_->load(CacheTable::kHeaderWords + static_cast<std::size_t>(page)))) {
      return true;
    }
  }
  return false;
}

bool CachedObject::check_again(std::uint64_t offset, std::uint64_t count) noexcept {
  if (count == 0 || offset >= bytes_) return false;
  const std::uint64_t end = offset + std::min(count, bytes_ - offset);
  bool all_right = true;
  for (std::uint64_t page = offset / kCachePageBytes; page * kCachePageBytes < end; ++page) {
    if (is_known(page) && verify(page)) continue;
    forget(page);
    all_right = false;
  }
  return !all_right;
}

const StoredFile* CachedObject::whole() const noexcept {
  return known_pages_.load(std::memory_order_acquire) == pages_ ? mirror_.get() : nullptr;
}

}  // namespace tfrfast
