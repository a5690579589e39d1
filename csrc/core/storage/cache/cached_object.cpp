#include "core/storage/cache/cached_object.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <iterator>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/hashing.h"
#include "core/base/process.h"
#include "core/base/warnings.h"
#include "core/storage/beyond_posix.h"
#include "core/storage/fault_guard.h"
#include "core/storage/temporary.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kPage = kCachePageBytes;
// The header has the first page of a file to itself.
constexpr std::uint64_t kObjectBegin = kPage;
// A range shorter than this is fetched with the whole block around it, which is fetched once in any
// case. Of longer ones, whole records are worth more than parts of many.
constexpr std::uint64_t kShortRange = kCacheBlockBytes / 2;
// What takes longer may be claimed by others.
constexpr std::uint32_t kMaxClaimTicks = 30 * 4;
// How much is counted before a line says so.
constexpr std::uint64_t kCountedAtOnce = std::uint64_t{64} << 20;
// How much longer a log may become than one line for each block takes.
constexpr std::uint64_t kMaxLogGrowth = 16;
constexpr std::uint64_t kMaxSpareLog = std::uint64_t{1} << 20;

std::atomic<std::uint64_t> bytes_read{0};
std::atomic<std::size_t> open_objects{0};

std::uint64_t pages_of(std::uint64_t bytes) noexcept {
  return bytes / kPage + (bytes % kPage != 0);
}

// The pages of a block between two pages of the object.
PageMask mask_between(std::uint64_t number, std::uint64_t first, std::uint64_t end) noexcept {
  const std::uint64_t begin = number * kCacheBlockPages;
  const std::uint64_t from = std::max(first, begin) - begin;
  const std::uint64_t to = std::min(end, begin + kCacheBlockPages) - begin;
  if (from >= to) return 0;
  return static_cast<PageMask>(((1U << (to - from)) - 1) << from);
}

PageMask bit_of(std::uint64_t page) noexcept {
  return static_cast<PageMask>(1U << (page % kCacheBlockPages));
}

// Quarters of a second, by a clock that all processes share.
std::uint32_t now_ticks() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now).count() / 250);
}

// Tells objects apart that a process of some number has open. The upper half is the same for all
// processes that see each other's numbers.
std::uint32_t make_claimer() {
  static std::atomic<std::uint32_t> serial{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const std::uint64_t mixed =
      fnv1a(std::to_string(now) + " " + std::to_string(serial.fetch_add(1)));
  return static_cast<std::uint32_t>(fnv1a(scope_of_processes()) << 16) |
         static_cast<std::uint16_t>(mixed ^ mixed >> 32);
}

// 0, or an errno.
int write_all(int descriptor, std::uint64_t offset, const std::uint8_t* bytes,
              std::uint64_t count) noexcept {
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

std::uint64_t disk_bytes_of(int descriptor) noexcept {
  struct stat status;
  return ::fstat(descriptor, &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * 512 : 0;
}

// Up to `count` bytes from `offset` on.
std::vector<std::uint8_t> read_bytes(int descriptor, std::uint64_t offset, std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got =
        ::pread(descriptor, bytes.data() + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

std::optional<CacheHeader> read_header(int descriptor) {
  std::size_t header_bytes = 0;
  return CacheHeader::decode(read_bytes(descriptor, 0, CacheHeader::kMaxBytes), &header_bytes);
}

// Calls take(line) for the lines from `at` on, up to `end`. Returns where the next one begins.
template <class Take>
std::uint64_t read_lines(int descriptor, std::uint64_t at, std::uint64_t end, const Take& take) {
  constexpr std::uint64_t kAtOnce = 256 << 10;
  std::vector<CacheLine> lines;
  while (end - at >= sizeof(CacheLine)) {
    const std::vector<std::uint8_t> bytes =
        read_bytes(descriptor, at, static_cast<std::size_t>(std::min(kAtOnce, end - at)));
    lines.clear();
    const std::size_t done = decode_lines(bytes, lines);
    if (done == 0) break;
    for (const CacheLine& each : lines) take(each);
    at += done;
  }
  return at;
}

std::uint64_t log_begin_of(std::uint64_t object_bytes) noexcept {
  return kObjectBegin + pages_of(object_bytes) * kPage;
}

}  // namespace

std::uint64_t cache_bytes_read() noexcept {
  return bytes_read.load(std::memory_order_relaxed);
}

bool describe_cached(int folder, const std::string& name, CacheEntry& entry) noexcept {
  try {
    const int opened = open_below(folder, name, O_RDONLY);
    if (opened < 0) return false;
    const FileDescriptor file(opened);
    struct stat status;
    auto header = read_header(opened);
    if (!header || ::fstat(opened, &status) != 0) return false;
    const std::uint64_t begin = log_begin_of(header->object_bytes);
    const auto end = static_cast<std::uint64_t>(status.st_size);
    entry.url = std::move(header->url);
    entry.object_bytes = header->object_bytes;
    if (begin > end) return false;
    read_lines(opened, begin, end, [&](const CacheLine& line) {
      if (line.kind != CacheLineKind::traffic) return;
      entry.served_bytes += line.first;
      entry.fetched_bytes += line.second;
    });
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::shared_ptr<CachedObject> CachedObject::open(std::shared_ptr<const CacheSet> set,
                                                 const std::string& url,
                                                 const std::string& identity,
                                                 std::uint64_t bytes) noexcept {
  try {
    const CacheHeader header{url, identity, bytes};
    if (set == nullptr || bytes == 0 || header.encode().empty()) return nullptr;
    std::string name = set->name_of(url);
    std::shared_ptr<CachedObject> made(new CachedObject(std::move(set), std::move(name), bytes));
    if (open_objects > kMaxOpen) {
      warn_once("cached objects",
                "More than " + std::to_string(kMaxOpen) +
                    " objects of caches are open in this process. The others come from the "
                    "network each time. Larger shards are fewer.");
      return nullptr;
    }
    return made->begin(header) ? made : nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

CachedObject::CachedObject(std::shared_ptr<const CacheSet> set, std::string name,
                           std::uint64_t bytes)
    : set_(std::move(set)),
      name_(std::move(name)),
      bytes_(bytes),
      page_count_(pages_of(bytes)),
      log_begin_(log_begin_of(bytes)),
      claimer_(make_claimer()),
      blocks_(static_cast<std::size_t>((page_count_ - 1) / kCacheBlockPages + 1)),
      log_end_(log_begin_) {
  ++open_objects;
}

CachedObject::~CachedObject() {
  if (file_mapping_ != nullptr) {
    write_counts();
    ::munmap(file_mapping_, static_cast<std::size_t>(kObjectBegin + bytes_));
  }
  SharedDescriptors::instance().forget(this);
  --open_objects;
}

bool CachedObject::begin(const CacheHeader& header) {
  install_fault_guard();
  if (!open_file(header) && !make(header)) return false;
  const Descriptor file = descriptor();
  if (file == nullptr) return false;
  void* const mapping = ::mmap(nullptr, static_cast<std::size_t>(kObjectBegin + bytes_), PROT_READ,
                               MAP_SHARED, file->get(), 0);
  if (mapping == MAP_FAILED) return false;
  file_mapping_ = mapping;
  mapping_ = static_cast<const std::uint8_t*>(mapping) + kObjectBegin;
  return true;
}

// False if there is no such file, or it is of something else, or damaged.
bool CachedObject::open_file(const CacheHeader& header) {
  const bool may_write = set_->folder().may_write();
  const int opened =
      open_below(set_->folder().descriptor(), name_, may_write ? O_RDWR | O_APPEND : O_RDONLY);
  if (opened < 0) return false;
  auto file = std::make_shared<const FileDescriptor>(opened);
  struct stat status;
  const auto found = read_header(opened);
  if (::fstat(opened, &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<std::uint64_t>(status.st_size) < log_begin_ || !found ||
      found->identity != header.identity || found->object_bytes != bytes_) {
    return false;
  }
  device_ = static_cast<std::uint64_t>(status.st_dev);
  inode_ = static_cast<std::uint64_t>(status.st_ino);
  SharedDescriptors::instance().acquire(this, [&] { return file; });
  const std::lock_guard lock(cache_mutex());
  refresh(*file);
  return true;
}

// In the place of whatever has the name. False if there is no room.
bool CachedObject::make(const CacheHeader& header) {
  constexpr std::uint64_t kNeeded = 2 * kPage;  // with a part of the folder
  CacheFolder& folder = set_->folder();
  if (folder.room_for(kNeeded) < kNeeded) return false;
  CacheFolder::Account account(folder);
  if (!account.is_open()) return false;
  if (open_file(header)) return true;  // another process was faster
  struct stat status;
  if (::fstatat(folder.descriptor(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      ::unlinkat(folder.descriptor(), name_.c_str(), 0) == 0) {
    account.settle(static_cast<std::uint64_t>(status.st_blocks) * 512, 0);
  }
  if (account.take(kNeeded) < kNeeded) return false;
  const std::vector<std::uint8_t> first = header.encode();
  const int made = open_below(folder.descriptor(), name_, O_WRONLY | O_CREAT | O_EXCL, 0600);
  int failed = made < 0 ? errno : 0;
  if (made >= 0) {
    // The header comes last: with it, the file is complete.
    if (::ftruncate(made, static_cast<off_t>(log_begin_)) != 0) failed = errno;
    if (failed == 0) failed = write_all(made, 0, first.data(), first.size());
    account.settle(kNeeded, std::max(disk_bytes_of(made), kNeeded));
    ::close(made);
    if (failed != 0) ::unlinkat(folder.descriptor(), name_.c_str(), 0);
  }
  if (failed != 0) {
    account.settle(kNeeded, 0);
    folder.tell_of_failure(failed);
  }
  return failed == 0 && open_file(header);
}

// The file, if it still has its name and its size. Few descriptors serve all objects, so hold it
// briefly.
CachedObject::Descriptor CachedObject::descriptor() const noexcept {
  if (was_removed_) return nullptr;
  try {
    Descriptor file = SharedDescriptors::instance().acquire(this, [this] {
      const int opened = open_below(set_->folder().descriptor(), name_,
                                    set_->folder().may_write() ? O_RDWR | O_APPEND : O_RDONLY);
      if (opened < 0) throw std::system_error(errno, std::generic_category());
      return std::make_shared<const FileDescriptor>(opened);
    });
    struct stat status;
    if (::fstat(file->get(), &status) == 0 && status.st_nlink > 0 &&
        static_cast<std::uint64_t>(status.st_dev) == device_ &&
        static_cast<std::uint64_t>(status.st_ino) == inode_ &&
        static_cast<std::uint64_t>(status.st_size) >= log_begin_) {
      return file;
    }
    was_removed_ = true;
  } catch (const std::system_error& error) {
    const int failed = error.code().value();
    was_removed_ = failed == ENOENT || failed == ENOTDIR || failed == ELOOP;
  } catch (const std::exception&) {
    // No memory.
  }
  return nullptr;
}

CachedObject::Block CachedObject::block(std::uint64_t number) const noexcept {
  return std::bit_cast<Block>(
      blocks_[static_cast<std::size_t>(number)].load(std::memory_order_acquire));
}

// False if the block is not `expected`, which becomes what it is.
bool CachedObject::exchange(std::uint64_t number, Block& expected, Block desired) const noexcept {
  auto word = std::bit_cast<std::uint64_t>(expected);
  if (!blocks_[static_cast<std::size_t>(number)].compare_exchange_strong(
          word, std::bit_cast<std::uint64_t>(desired), std::memory_order_acq_rel)) {
    expected = std::bit_cast<Block>(word);
    return false;
  }
  const PageMask all = pages_of_block(number);
  if (desired.known == all && expected.known != all) ++whole_blocks_;
  if (desired.known != all && expected.known == all) --whole_blocks_;
  return true;
}

PageMask CachedObject::pages_of_block(std::uint64_t number) const noexcept {
  return mask_between(number, 0, page_count_);
}

std::size_t CachedObject::page_bytes(std::uint64_t page) const noexcept {
  return static_cast<std::size_t>(std::min(kPage, bytes_ - page * kPage));
}

// Compares what is there of a block with its checksum. If it is wrong, it is no longer there.
void CachedObject::verify(std::uint64_t number) const noexcept {
  for (Block found = block(number); found.known != found.present;) {
    const std::uint64_t first = number * kCacheBlockPages;
    const std::uint8_t* const mapping = mapping_;
    const std::uint64_t bytes = bytes_;
    std::uint32_t crc = 0;
    std::uint32_t* const out = &crc;
    const bool is_readable = run_guarded([=] {
      for (unsigned i = 0; i < kCacheBlockPages; ++i) {
        if ((found.present >> i & 1) == 0) continue;
        const std::uint64_t at = (first + i) * kPage;
        *out ^=
            page_checksum(i, mapping + at, static_cast<std::size_t>(std::min(kPage, bytes - at)));
      }
    });
    const bool is_right = is_readable && crc == found.crc;
    const Block after = is_right ? Block{found.crc, found.present, found.present} : Block{};
    if (exchange(number, found, after)) return;
  }
}

bool CachedObject::is_known(std::uint64_t page) const noexcept {
  const std::uint64_t number = page / kCacheBlockPages;
  const Block found = block(number);
  if ((found.known & bit_of(page)) != 0) return true;
  if ((found.present & bit_of(page)) == 0) return false;
  verify(number);
  return (block(number).known & bit_of(page)) != 0;
}

std::size_t CachedObject::read(std::uint64_t offset, std::uint8_t* out,
                               std::size_t count) const noexcept {
  if (count == 0 || offset >= bytes_) return 0;
  const std::uint64_t first = offset / kPage, end = pages_of(offset + count);
  std::uint64_t page = first;
  while (page < end && is_known(page)) ++page;
  if (page == first) return 0;
  const auto found = static_cast<std::size_t>(page == end ? count : page * kPage - offset);
  const std::uint8_t* const from = mapping_ + offset;
  if (!run_guarded([=] { std::memcpy(out, from, found); })) {
    // The file was cut short. What is left of it is compared again.
    for (std::uint64_t each = first / kCacheBlockPages; each <= (page - 1) / kCacheBlockPages;
         ++each) {
      Block was = block(each);
      while (!exchange(each, was, {was.crc, was.present, 0})) {
      }
      verify(each);
    }
    return 0;
  }
  bytes_read.fetch_add(found, std::memory_order_relaxed);
  count_served(found);
  return found;
}

const std::uint8_t* CachedObject::whole() const noexcept {
  return whole_blocks_.load(std::memory_order_acquire) == blocks_.size() ? mapping_ : nullptr;
}

// ---- the log ----

void CachedObject::refresh(const FileDescriptor& file) const noexcept {
  struct stat status;
  if (::fstat(file.get(), &status) != 0) return;
  const auto end = static_cast<std::uint64_t>(status.st_size);
  if (end <= log_end_) return;
  try {
    log_end_ =
        read_lines(file.get(), log_end_, end, [this](const CacheLine& line) { take_line(line); });
  } catch (const std::exception&) {
    // No memory: they are read another time.
  }
}

void CachedObject::take_line(const CacheLine& line) const {
  if (line.block >= blocks_.size() || line.pages == 0 ||
      (line.pages & ~pages_of_block(line.block)) != 0) {
    return;
  }
  const auto [begin, end] = claims_.equal_range(line.block);
  switch (line.kind) {
    case CacheLineKind::kept: {
      Block was = block(line.block);
      Block now;
      do {
        // Pages that are written once more were wrong, or are the same.
        const bool is_more = (was.present & line.pages) == 0;
        now = is_more ? Block{was.crc ^ line.first, PageMask(was.present | line.pages), was.known}
                      : Block{line.first, line.pages, 0};
      } while (!exchange(line.block, was, now));
      for (auto each = begin; each != end;) {
        each->second.pages &= static_cast<PageMask>(~line.pages);
        each = each->second.pages == 0 ? claims_.erase(each) : std::next(each);
      }
      return;
    }
    case CacheLineKind::claimed: {
      // Those who came first have it.
      Claim claim{line.first, line.second, line.third, line.pages};
      for (auto each = begin; each != end;) {
        if (!is_active(each->second)) {
          each = claims_.erase(each);
          continue;
        }
        claim.pages &= static_cast<PageMask>(~each->second.pages);
        ++each;
      }
      if (claim.pages != 0) claims_.emplace(line.block, claim);
      return;
    }
    case CacheLineKind::released:
      for (auto each = begin; each != end;) {
        Claim& claim = each->second;
        if (claim.process == line.first && claim.claimer == line.second) {
          claim.pages &= static_cast<PageMask>(~line.pages);
        }
        each = claim.pages == 0 ? claims_.erase(each) : std::next(each);
      }
      return;
    case CacheLineKind::traffic:
      return;
  }
}

// Whether whoever claimed it lives and has had it not too long.
bool CachedObject::is_active(const Claim& claim) const noexcept {
  if (now_ticks() - claim.ticks > kMaxClaimTicks) return false;
  if ((claim.claimer ^ claimer_) >> 16 != 0) return true;  // its number says nothing here
  return ::kill(static_cast<pid_t>(claim.process), 0) == 0 || errno != ESRCH;
}

bool CachedObject::is_own(const Claim& claim) const noexcept {
  return claim.claimer == claimer_ && claim.process == static_cast<std::uint32_t>(process_number());
}

PageMask CachedObject::claimed_pages(std::uint64_t number, bool only_own) const noexcept {
  PageMask pages = 0;
  const auto [begin, end] = claims_.equal_range(number);
  for (auto each = begin; each != end; ++each) {
    if (only_own ? is_own(each->second) : is_active(each->second)) pages |= each->second.pages;
  }
  return pages;
}

// 0, or an errno.
int CachedObject::append(const FileDescriptor& file,
                         std::span<const CacheLine> lines) const noexcept {
  if (lines.empty()) return 0;
  try {
    const std::vector<std::uint8_t> bytes = encode_lines(lines);
    ssize_t put = 0;
    do {
      put = ::write(file.get(), bytes.data(), bytes.size());
    } while (put < 0 && errno == EINTR);
    if (put < 0) return errno;
    // A piece of a line does no harm. Nobody writes the rest behind lines of others.
    return static_cast<std::size_t>(put) == bytes.size() ? 0 : ENOSPC;
  } catch (const std::exception&) {
    return ENOMEM;
  }
}

// ---- claims ----

MissingPages CachedObject::claim(std::span<const FileRange> wanted,
                                 std::uint64_t gap_bytes) noexcept {
  MissingPages missing;
  try {
    // The pages that may be fetched: those that are wanted, their neighbours, and those between.
    std::vector<FileRange> spans;
    std::uint64_t absent = 0;
    for (const FileRange& each : wanted) {
      if (each.bytes == 0) continue;
      std::uint64_t first = each.offset / kPage, end = pages_of(each.offset + each.bytes);
      if (each.bytes < kShortRange) {
        first = first / kCacheBlockPages * kCacheBlockPages;
        end = std::min(page_count_,
                       (end - 1) / kCacheBlockPages * kCacheBlockPages + kCacheBlockPages);
      }
      if (!spans.empty()) {
        FileRange& last = spans.back();
        const std::uint64_t last_end = last.offset + last.bytes;
        if (first <= last_end + gap_bytes / kPage) {
          last.bytes = std::max(last_end, end) - last.offset;
          continue;
        }
      }
      spans.push_back({first, end - first});
    }
    for (const FileRange& each : spans) {
      for (std::uint64_t page = each.offset; page < each.offset + each.bytes; ++page) {
        absent += (block(page / kCacheBlockPages).present & bit_of(page)) == 0;
      }
    }
    const Descriptor file = absent == 0 ? nullptr : descriptor();
    std::uint64_t room = file == nullptr ? 0 : set_->folder().room_for(absent * kPage) / kPage;
    const std::uint64_t max_log = kMaxSpareLog + kMaxLogGrowth * sizeof(CacheLine) * blocks_.size();

    std::unique_lock lock(cache_mutex());
    if (file != nullptr) refresh(*file);
    if (log_end_ - log_begin_ > max_log) room = 0;
    int failed = 0;
    std::vector<FileRange> runs;  // of pages that can be claimed, each with some that are wanted
    for (const FileRange& each : spans) {
      std::uint64_t run = each.offset;
      const std::uint64_t end = each.offset + each.bytes;
      PageMask free = 0;
      for (std::uint64_t page = each.offset; page <= end; ++page) {
        const std::uint64_t number = page / kCacheBlockPages;
        if (page < end && (page == each.offset || page % kCacheBlockPages == 0)) {
          free = static_cast<PageMask>(~(block(number).present | claimed_pages(number, false)));
        }
        if (page < end && (free & bit_of(page)) != 0 && page - run < room) continue;
        // The run ends before this page.
        const auto after = std::partition_point(
            wanted.begin(), wanted.end(),
            [&](const FileRange& range) { return range.offset + range.bytes <= run * kPage; });
        if (page > run && after != wanted.end() && after->offset < page * kPage) {
          runs.push_back({run, page - run});
          room -= page - run;
        }
        run = page + 1;
      }
    }
    if (!runs.empty()) {
      std::vector<CacheLine> lines;
      const auto process = static_cast<std::uint32_t>(process_number());
      for (const FileRange& each : runs) {
        const std::uint64_t end = each.offset + each.bytes;
        for (std::uint64_t number = each.offset / kCacheBlockPages; number * kCacheBlockPages < end;
             ++number) {
          lines.push_back({static_cast<std::uint32_t>(number),
                           mask_between(number, each.offset, end), CacheLineKind::claimed, process,
                           claimer_, now_ticks(), 0});
        }
      }
      failed = append(*file, lines);
      if (failed == 0) {
        refresh(*file);
      } else {
        lines.clear();
      }
      // Others may have been faster.
      for (const CacheLine& each : lines) {
        const PageMask own = each.pages & claimed_pages(each.block, true);
        for (std::uint64_t i = 0; i < kCacheBlockPages; ++i) {
          if ((own >> i & 1) == 0) continue;
          const std::uint64_t page = each.block * kCacheBlockPages + i;
          if (!missing.claimed.empty() &&
              missing.claimed.back().offset + missing.claimed.back().bytes == page * kPage) {
            missing.claimed.back().bytes += page_bytes(page);
          } else {
            missing.claimed.push_back({page * kPage, page_bytes(page)});
          }
        }
      }
    }
    for (const FileRange& each : wanted) add_passing(each, missing.passing);
    lock.unlock();
    set_->folder().tell_of_failure(failed);
  } catch (const std::exception&) {
    // No memory. Whoever wants it asks again, past the cache.
  }
  return missing;
}

// What is in none of the pages that are there or being fetched.
void CachedObject::add_passing(const FileRange& wanted, std::vector<FileRange>& passing) const {
  const std::uint64_t end = wanted.offset + wanted.bytes;
  for (std::uint64_t at = wanted.offset; at < end;) {
    const std::uint64_t page = at / kPage;
    const std::uint64_t stop = std::min(end, (page + 1) * kPage);
    const std::uint64_t number = page / kCacheBlockPages;
    const PageMask there = block(number).present | claimed_pages(number, false);
    if ((there & bit_of(page)) == 0) {
      if (!passing.empty() && passing.back().offset + passing.back().bytes == at) {
        passing.back().bytes += stop - at;
      } else {
        passing.push_back({at, stop - at});
      }
    }
    at = stop;
  }
}

void CachedObject::release(std::uint64_t offset, std::uint64_t count) noexcept {
  if (count == 0) return;
  try {
    const std::uint64_t first = offset / kPage, end = pages_of(offset + count);
    {
      const std::lock_guard lock(cache_mutex());
      if (claims_.empty()) return;
    }
    const Descriptor file = descriptor();
    const std::lock_guard lock(cache_mutex());
    std::vector<CacheLine> lines;
    for (std::uint64_t number = first / kCacheBlockPages; number * kCacheBlockPages < end;
         ++number) {
      const PageMask own = claimed_pages(number, true) & mask_between(number, first, end);
      if (own == 0) continue;
      lines.push_back({static_cast<std::uint32_t>(number), own, CacheLineKind::released,
                       static_cast<std::uint32_t>(process_number()), claimer_, 0, 0});
    }
    for (const CacheLine& each : lines) take_line(each);
    if (file == nullptr || append(*file, lines) != 0) return;
    refresh(*file);
  } catch (const std::exception&) {
    // No memory: others wait for it until its time is over.
  }
}

bool CachedObject::is_awaited(std::uint64_t offset, std::uint64_t count) const noexcept {
  if (count == 0) return false;
  const Descriptor file = descriptor();
  const std::uint64_t first = offset / kPage, end = pages_of(offset + count);
  const std::lock_guard lock(cache_mutex());
  if (file != nullptr) refresh(*file);
  for (std::uint64_t number = first / kCacheBlockPages; number * kCacheBlockPages < end; ++number) {
    const PageMask wanted =
        mask_between(number, first, end) & static_cast<PageMask>(~block(number).present);
    if ((wanted & claimed_pages(number, false)) != 0) return true;
  }
  return false;
}

// ---- writing ----

void CachedObject::keep(std::uint64_t offset, const std::uint8_t* bytes,
                        std::uint64_t count) noexcept {
  const Descriptor file = set_->folder().is_broken() ? nullptr : descriptor();
  if (file != nullptr) {
    set_->folder().tell_of_failure(write_pages(*file, offset, bytes, count, true));
    const std::lock_guard lock(cache_mutex());
    refresh(*file);
  }
  release(offset, count);
}

void CachedObject::replace(std::uint64_t offset, const std::uint8_t* bytes,
                           std::uint64_t count) noexcept {
  const Descriptor file = descriptor();
  CacheFolder& folder = set_->folder();
  const bool may_write = file != nullptr && folder.may_write() && !folder.is_broken();
  const int failed = may_write ? write_pages(*file, offset, bytes, count, false) : EROFS;
  if (failed == 0) {
    const std::lock_guard lock(cache_mutex());
    return refresh(*file);
  }
  folder.tell_of_failure(may_write ? failed : 0);
  for (std::uint64_t number = offset / kCacheBlockBytes; number * kCacheBlockBytes < offset + count;
       ++number) {
    Block was = block(number);
    while (!exchange(number, was, {})) {
    }
  }
}

// 0, or an errno. Pages for which there is no room are left out.
int CachedObject::write_pages(const FileDescriptor& file, std::uint64_t offset,
                              const std::uint8_t* bytes, std::uint64_t count,
                              bool only_missing) noexcept {
  try {
    const std::uint64_t stop = offset + count;
    const std::uint64_t first = pages_of(offset);
    const std::uint64_t end = stop == bytes_ ? page_count_ : stop / kPage;
    CacheFolder& folder = set_->folder();
    CacheFolder::Account account(folder);
    if (!account.is_open()) return EAGAIN;
    {
      const std::lock_guard lock(cache_mutex());
      refresh(file);
    }
    const auto is_there = [this](std::uint64_t page) {
      return (block(page / kCacheBlockPages).present & bit_of(page)) != 0;
    };
    std::uint64_t absent = 0;
    for (std::uint64_t page = first; page < end; ++page) absent += !is_there(page);
    const std::uint64_t taken = account.take(absent * kPage);
    std::uint64_t left = taken / kPage;

    // Where `file` writes, it appends.
    const int opened = open_below(folder.descriptor(), name_, O_WRONLY);
    if (opened < 0) {
      account.settle(taken, 0);
      return ESTALE;
    }
    const FileDescriptor data(opened);
    struct stat status;
    const bool is_ours = ::fstat(opened, &status) == 0 &&
                         static_cast<std::uint64_t>(status.st_dev) == device_ &&
                         static_cast<std::uint64_t>(status.st_ino) == inode_ &&
                         static_cast<std::uint64_t>(status.st_size) >= log_begin_;
    const std::uint64_t before = disk_bytes_of(opened);
    std::vector<CacheLine> lines;
    std::uint64_t written = 0;
    int failed = is_ours ? 0 : ESTALE;
    for (std::uint64_t page = first; page < end && failed == 0;) {
      const std::uint64_t run = page;
      for (; page < end; ++page) {
        const bool takes_room = !is_there(page);
        if (takes_room ? left == 0 : only_missing) break;
        left -= takes_room;
        written += takes_room;
        const std::uint8_t* const from = bytes + (page * kPage - offset);
        const auto number = static_cast<std::uint32_t>(page / kCacheBlockPages);
        if (page == run || lines.back().block != number) {
          lines.push_back({number, 0, CacheLineKind::kept, 0, 0, 0, 0});
        }
        lines.back().pages |= bit_of(page);
        lines.back().first ^= page_checksum(page, from, page_bytes(page));
      }
      if (page == run) {
        ++page;
        continue;
      }
      failed = write_all(opened, kObjectBegin + run * kPage, bytes + (run * kPage - offset),
                         std::min(page * kPage, bytes_) - run * kPage);
    }
    if (failed == 0) failed = append(file, lines);
    const std::uint64_t grown = disk_bytes_of(opened) - std::min(before, disk_bytes_of(opened));
    account.settle(taken, std::max(grown, written * kPage));
    return failed;
  } catch (const std::exception&) {
    return ENOMEM;
  }
}

// ---- for whoever reads the mapping, and for people ----

void CachedObject::announce(std::span<const FileRange> ranges) const noexcept {
  for (const FileRange& each : ranges) {
    if (each.offset >= bytes_) continue;
    advise_mapping(file_mapping_, kObjectBegin + each.offset,
                   std::min(each.bytes, bytes_ - each.offset));
  }
}

bool CachedObject::is_in_memory(std::uint64_t offset) const noexcept {
  const Descriptor file = descriptor();
  return file == nullptr || cached_in_file(file->get(), kObjectBegin + offset).value_or(true);
}

void CachedObject::count(std::uint64_t served, std::uint64_t fetched) const noexcept {
  const std::uint64_t counted = served_.fetch_add(served, std::memory_order_relaxed) + served +
                                fetched_.fetch_add(fetched, std::memory_order_relaxed) + fetched;
  if (counted >= kCountedAtOnce) write_counts();
}

void CachedObject::write_counts() const noexcept {
  std::uint64_t served = served_.exchange(0), fetched = fetched_.exchange(0);
  if (served + fetched == 0 || !set_->folder().may_write() || set_->folder().is_broken()) return;
  const Descriptor file = descriptor();
  while (file != nullptr && served + fetched > 0) {
    const CacheLine line{0,
                         0,
                         CacheLineKind::traffic,
                         static_cast<std::uint32_t>(std::min<std::uint64_t>(served, UINT32_MAX)),
                         static_cast<std::uint32_t>(std::min<std::uint64_t>(fetched, UINT32_MAX)),
                         0,
                         0};
    if (append(*file, {&line, 1}) != 0) return;
    served -= line.first;
    fetched -= line.second;
  }
}

}  // namespace tfrfast
