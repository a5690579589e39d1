#include "core/storage/cache/cached_object.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <exception>
#include <mutex>
#include <utility>

#include "core/base/warnings.h"
#include "core/crc32c/crc32c.h"
#include "core/storage/fault_guard.h"
#include "core/storage/local/beyond_posix.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kPage = kCachePageBytes;
constexpr std::uint64_t kBegin = CacheFile::kObjectBegin;
// A range shorter than this is fetched with its whole block, which is fetched once in any case.
// From a longer range, whole records are worth more than parts of many.
constexpr std::uint64_t kShortRange = kCacheBlockBytes / 2;
// The bytes to count before a line records the count.
constexpr std::uint64_t kCountedAtOnce = std::uint64_t{64} << 20;

std::atomic<std::uint64_t> bytes_read{0};
std::atomic<std::size_t> open_objects{0};

std::uint64_t block_of(std::uint64_t page) noexcept {
  return page / kCacheBlockPages;
}

PageMask bit_of(std::uint64_t page) noexcept {
  return static_cast<PageMask>(1U << (page % kCacheBlockPages));
}

// The pages of a block within [first, end) of the object.
PageMask mask_between(std::uint64_t number, std::uint64_t first, std::uint64_t end) noexcept {
  const std::uint64_t begin = number * kCacheBlockPages;
  const std::uint64_t from = std::max(first, begin) - begin;
  const std::uint64_t to = std::min(end, begin + kCacheBlockPages) - begin;
  if (from >= to) return 0;
  return static_cast<PageMask>(((1U << (to - from)) - 1) << from);
}

// Calls action(block, pages of the block) for the blocks of the pages [first, end).
template <class Action>
void for_blocks(std::uint64_t first, std::uint64_t end, const Action& action) {
  for (std::uint64_t number = block_of(first); number * kCacheBlockPages < end; ++number) {
    action(number, mask_between(number, first, end));
  }
}

// The checksum of a page. XOR joins the checksums of a block's pages, in any order. The checksum
// depends on the page's place in the block, so exchanged pages are noticed.
std::uint32_t page_checksum(std::uint64_t page, const std::uint8_t* bytes,
                            std::uint64_t count) noexcept {
  return std::rotl(crc32c(bytes, static_cast<std::size_t>(count)),
                   static_cast<int>(2 * (page % kCacheBlockPages)));
}

// Appends a range, or extends the last range if the new range follows.
void add_range(std::vector<FileRange>& ranges, std::uint64_t begin, std::uint64_t bytes) {
  if (!ranges.empty() && ranges.back().offset + ranges.back().bytes == begin) {
    ranges.back().bytes += bytes;
  } else {
    ranges.push_back({begin, bytes});
  }
}

}  // namespace

std::uint64_t cache_bytes_read() noexcept {
  return bytes_read.load(std::memory_order_relaxed);
}

std::shared_ptr<CachedObject> CachedObject::open(std::shared_ptr<const CacheSet> set,
                                                 const std::string& url,
                                                 const std::string& identity,
                                                 std::uint64_t bytes) noexcept {
  try {
    if (set == nullptr || bytes == 0) return nullptr;
    std::shared_ptr<CachedObject> made(new CachedObject(std::move(set), url, identity, bytes));
    if (open_objects > kMaxOpen) {
      warn_once("cached objects",
                "More than " + std::to_string(kMaxOpen) +
                    " objects of caches are open in this process. Further objects come from the "
                    "network each time. Make fewer, larger shards.");
      return nullptr;
    }
    return made->begin() ? made : nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

CachedObject::CachedObject(std::shared_ptr<const CacheSet> set, const std::string& url,
                           const std::string& identity, std::uint64_t bytes)
    : file_(std::move(set), url, identity, bytes),
      bytes_(bytes),
      page_count_(cache_pages_of(bytes_)),
      blocks_(static_cast<std::size_t>(block_of(page_count_ - 1) + 1)) {
  ++open_objects;
}

CachedObject::~CachedObject() {
  if (file_mapping_ != nullptr) {
    write_counts();
    ::munmap(file_mapping_, static_cast<std::size_t>(kBegin + bytes_));
  }
  --open_objects;
}

bool CachedObject::begin() {
  install_fault_guard();
  if (!file_.open()) return false;
  const CacheFile::Descriptor file = file_.open_lines();
  if (file == nullptr) return false;
  void* const mapping = ::mmap(nullptr, static_cast<std::size_t>(kBegin + bytes_), PROT_READ,
                               MAP_SHARED, file->get(), 0);
  if (mapping == MAP_FAILED) return false;
  file_mapping_ = mapping;
  mapping_ = static_cast<const std::uint8_t*>(mapping) + kBegin;
  const std::lock_guard lock(cache_mutex());
  refresh(*file);
  return true;
}

CachedObject::Block CachedObject::block(std::uint64_t number) const noexcept {
  return std::bit_cast<Block>(
      blocks_[static_cast<std::size_t>(number)].load(std::memory_order_acquire));
}

// Sets a block to change(block), which may be called more than once.
template <class Change>
void CachedObject::change(std::uint64_t number, const Change& change) const noexcept {
  std::atomic<std::uint64_t>& at = blocks_[static_cast<std::size_t>(number)];
  auto word = at.load(std::memory_order_acquire);
  Block before, after;
  do {
    before = std::bit_cast<Block>(word);
    after = change(before);
  } while (!at.compare_exchange_strong(word, std::bit_cast<std::uint64_t>(after),
                                       std::memory_order_acq_rel));
  const PageMask all = pages_of_block(number);
  if (after.known == all && before.known != all) ++whole_blocks_;
  if (after.known != all && before.known == all) --whole_blocks_;
}

PageMask CachedObject::pages_of_block(std::uint64_t number) const noexcept {
  return mask_between(number, 0, page_count_);
}

std::uint64_t CachedObject::bytes_of_pages(std::uint64_t first, std::uint64_t end) const noexcept {
  return std::min(end * kPage, bytes_) - first * kPage;
}

// Compares a block's present pages with the checksum. If the checksum is wrong, the pages no longer
// count as present.
void CachedObject::verify(std::uint64_t number) const noexcept {
  const std::uint8_t* const mapping = mapping_;
  const std::uint64_t first = number * kCacheBlockPages, bytes = bytes_;
  change(number, [=](const Block& found) {
    std::uint32_t crc = 0;
    std::uint32_t* const out = &crc;
    const bool is_readable = run_guarded([=] {
      for (unsigned i = 0; i < kCacheBlockPages; ++i) {
        if ((found.present >> i & 1) == 0) continue;
        const std::uint64_t at = (first + i) * kPage;
        *out ^= page_checksum(i, mapping + at, std::min(kPage, bytes - at));
      }
    });
    return is_readable && crc == found.crc ? Block{crc, found.present, found.present} : Block{};
  });
}

bool CachedObject::is_there(std::uint64_t page) const noexcept {
  return (block(block_of(page)).present & bit_of(page)) != 0;
}

bool CachedObject::is_known(std::uint64_t page) const noexcept {
  const std::uint64_t number = block_of(page);
  const Block found = block(number);
  if ((found.known & bit_of(page)) != 0) return true;
  if ((found.present & bit_of(page)) == 0) return false;
  verify(number);
  return (block(number).known & bit_of(page)) != 0;
}

std::size_t CachedObject::read(std::uint64_t offset, std::uint8_t* out,
                               std::size_t count) const noexcept {
  if (count == 0 || offset >= bytes_) return 0;
  const std::uint64_t first = offset / kPage, end = cache_pages_of(offset + count);
  std::uint64_t page = first;
  while (page < end && is_known(page)) ++page;
  if (page == first) return 0;
  const auto found = static_cast<std::size_t>(page == end ? count : page * kPage - offset);
  const std::uint8_t* const from = mapping_ + offset;
  if (!run_guarded([=] { std::memcpy(out, from, found); })) {
    // The file was cut short.
    for (std::uint64_t number = block_of(first); number <= block_of(page - 1); ++number) {
      verify(number);
    }
    return 0;
  }
  bytes_read.fetch_add(found, std::memory_order_relaxed);
  count_served(found);
  return found;
}

bool CachedObject::has(std::uint64_t offset, std::uint64_t count) const noexcept {
  std::uint64_t page = offset / kPage;
  const std::uint64_t end = cache_pages_of(offset + count);
  while (page < end && is_there(page)) ++page;
  return page >= end;
}

const std::uint8_t* CachedObject::whole() const noexcept {
  return whole_blocks_.load(std::memory_order_acquire) == blocks_.size() ? mapping_ : nullptr;
}

// ---- the log ----

void CachedObject::refresh(const FileDescriptor& file) const noexcept {
  file_.read_new_lines(file, [this](const CacheLine& line) { take_line(line); });
}

void CachedObject::take_line(const CacheLine& line) const {
  // A line of traffic has no pages.
  if (line.block >= blocks_.size() || line.pages == 0 ||
      (line.pages & ~pages_of_block(line.block)) != 0) {
    return;
  }
  if (line.kind == CacheLineKind::kept) {
    change(line.block, [&line](const Block& was) {
      // Pages written again were wrong, or are unchanged.
      const bool is_more = (was.present & line.pages) == 0;
      return is_more ? Block{was.crc ^ line.first, PageMask(was.present | line.pages), was.known}
                     : Block{line.first, line.pages, 0};
    });
  }
  claims_.take(line);
}

// ---- claims ----

// Returns the pages that may be fetched: the wanted pages, their neighbours, and the pages between.
std::vector<FileRange> CachedObject::spans_around(std::span<const FileRange> wanted,
                                                  std::uint64_t gap_bytes) const {
  std::vector<FileRange> spans;
  for (const FileRange& each : wanted) {
    if (each.bytes == 0) continue;
    std::uint64_t first = each.offset / kPage, end = cache_pages_of(each.offset + each.bytes);
    if (each.bytes < kShortRange) {
      first = block_of(first) * kCacheBlockPages;
      end = std::min(page_count_, (block_of(end - 1) + 1) * kCacheBlockPages);
    }
    if (!spans.empty() && first <= spans.back().offset + spans.back().bytes + gap_bytes / kPage) {
      FileRange& last = spans.back();
      last.bytes = std::max(last.offset + last.bytes, end) - last.offset;
    } else {
      spans.push_back({first, end - first});
    }
  }
  return spans;
}

PageMask CachedObject::there_or_coming(std::uint64_t number) const noexcept {
  return block(number).present | claims_.of_all(number);
}

// Makes lines for runs of absent pages that no process fetches. Each run has some wanted bytes.
std::vector<CacheLine> CachedObject::lines_to_claim(std::span<const FileRange> spans,
                                                    std::span<const FileRange> wanted,
                                                    std::uint64_t space_pages) const {
  std::vector<CacheLine> lines;
  for (const FileRange& each : spans) {
    const std::uint64_t end = each.offset + each.bytes;
    std::uint64_t run = each.offset;
    PageMask there = 0;
    for (std::uint64_t page = each.offset; page <= end; ++page) {
      if (page == each.offset || page % kCacheBlockPages == 0) {
        there = page < end ? there_or_coming(block_of(page)) : PageMask{0};
      }
      if (page < end && (there & bit_of(page)) == 0 && page - run < space_pages) continue;
      // The run ends before this page.
      const auto after = std::partition_point(
          wanted.begin(), wanted.end(),
          [&](const FileRange& range) { return range.offset + range.bytes <= run * kPage; });
      if (page > run && after != wanted.end() && after->offset < page * kPage) {
        for_blocks(run, page, [&](std::uint64_t number, PageMask pages) {
          lines.push_back(claims_.line(CacheLineKind::claimed, number, pages));
        });
        space_pages -= page - run;
      }
      run = page + 1;
    }
  }
  return lines;
}

MissingPages CachedObject::claim(std::span<const FileRange> wanted,
                                 std::uint64_t gap_bytes) noexcept {
  MissingPages missing;
  try {
    const std::vector<FileRange> spans = spans_around(wanted, gap_bytes);
    std::uint64_t absent = 0;
    for (const FileRange& each : spans) {
      for (std::uint64_t page = each.offset; page < each.offset + each.bytes; ++page) {
        absent += !is_there(page);
      }
    }
    if (absent == 0) return missing;
    const CacheFile::Descriptor file = file_.open_lines();
    // Without the lock, because other sets may have to give way.
    std::uint64_t space = file == nullptr ? 0 : file_.folder().space_for(absent * kPage) / kPage;
    int failed = 0;
    {
      const std::lock_guard lock(cache_mutex());
      if (file != nullptr) refresh(*file);
      if (file_.has_many_lines()) space = 0;
      const std::vector<CacheLine> lines = lines_to_claim(spans, wanted, space);
      if (!lines.empty()) {
        failed = CacheFile::append(*file, lines);
        refresh(*file);
      }
      // Another process may have been faster.
      for (const CacheLine& each : lines) {
        const PageMask own = each.pages & claims_.own(each.block);
        const std::uint64_t first = each.block * kCacheBlockPages;
        for (std::uint64_t page = first; page < first + kCacheBlockPages; ++page) {
          if ((own & bit_of(page)) == 0) continue;
          add_range(missing.claimed, page * kPage, bytes_of_pages(page, page + 1));
        }
      }
      for (const FileRange& each : wanted) {
        const std::uint64_t end = each.offset + each.bytes;
        for (std::uint64_t at = each.offset, stop = 0; at < end; at = stop) {
          const std::uint64_t page = at / kPage;
          stop = std::min(end, (page + 1) * kPage);
          const bool passes = (there_or_coming(block_of(page)) & bit_of(page)) == 0;
          if (passes) add_range(missing.passing, at, stop - at);
        }
      }
    }
    file_.folder().tell_of_failure(failed);
  } catch (const std::exception&) {
    // Memory is short. The reader will request the bytes past the cache.
  }
  return missing;
}

void CachedObject::release(std::uint64_t offset, std::uint64_t count) noexcept {
  if (count == 0) return;
  try {
    std::vector<CacheLine> lines;
    {
      const std::lock_guard lock(cache_mutex());
      for_blocks(offset / kPage, cache_pages_of(offset + count),
                 [&](std::uint64_t number, PageMask pages) {
                   pages &= claims_.own(number);
                   if (pages == 0) return;
                   lines.push_back(claims_.line(CacheLineKind::released, number, pages));
                 });
      for (const CacheLine& each : lines) claims_.take(each);
    }
    if (lines.empty()) return;
    const CacheFile::Descriptor file = file_.open_lines();
    if (file != nullptr) CacheFile::append(*file, lines);
  } catch (const std::exception&) {
    // Memory is short: other processes wait until the claim expires.
  }
}

bool CachedObject::is_awaited(std::uint64_t offset, std::uint64_t count) const noexcept {
  if (count == 0) return false;
  const CacheFile::Descriptor file = file_.open_lines();
  bool is_any = false;
  const std::lock_guard lock(cache_mutex());
  if (file != nullptr) refresh(*file);
  for_blocks(offset / kPage, cache_pages_of(offset + count),
             [&](std::uint64_t number, PageMask pages) {
               is_any = is_any || (pages & ~block(number).present & claims_.of_all(number)) != 0;
             });
  return is_any;
}

// ---- writing ----

void CachedObject::keep(std::uint64_t offset, const std::uint8_t* bytes,
                        std::uint64_t count) noexcept {
  write_pages(offset, bytes, count, true);
  release(offset, count);
}

void CachedObject::replace(std::uint64_t offset, const std::uint8_t* bytes,
                           std::uint64_t count) noexcept {
  if (write_pages(offset, bytes, count, false)) return;
  for_blocks(offset / kPage, cache_pages_of(offset + count), [&](std::uint64_t number, PageMask) {
    change(number, [](const Block&) { return Block{}; });
  });
}

// Writes pages as far as there is space, then their lines. False on failure.
bool CachedObject::write_pages(std::uint64_t offset, const std::uint8_t* bytes, std::uint64_t count,
                               bool only_missing) noexcept {
  CacheFolder& folder = file_.folder();
  if (!folder.may_write() || folder.is_broken()) return false;
  try {
    const std::uint64_t stop = offset + count;
    const std::uint64_t first = cache_pages_of(offset);
    const std::uint64_t end = stop == bytes_ ? page_count_ : stop / kPage;
    CacheFolder::Account account(folder);
    const CacheFile::Descriptor log = file_.open_lines(), data = file_.open_bytes();
    if (!account.is_open() || log == nullptr || data == nullptr) return false;
    const auto read_log = [&] {
      const std::lock_guard lock(cache_mutex());
      refresh(*log);
    };
    read_log();
    const std::uint64_t before = disk_bytes_of(data->get());
    std::uint64_t absent = 0;
    for (std::uint64_t page = first; page < end; ++page) absent += !is_there(page);
    const std::uint64_t taken = account.take(absent * kPage);
    std::uint64_t left = taken / kPage;
    std::vector<CacheLine> lines;
    int failed = 0;
    for (std::uint64_t page = first; page < end && failed == 0; ++page) {
      const std::uint64_t run = page;
      for (; page < end; ++page) {
        const bool takes_space = !is_there(page);
        if (takes_space ? left == 0 : only_missing) break;
        left -= takes_space;
        const auto number = static_cast<std::uint32_t>(block_of(page));
        if (page == run || lines.back().block != number) {
          lines.push_back({number, 0, CacheLineKind::kept, 0, 0, 0, 0});
        }
        lines.back().pages |= bit_of(page);
        lines.back().first ^=
            page_checksum(page, bytes + (page * kPage - offset), bytes_of_pages(page, page + 1));
      }
      if (page == run) continue;
      failed = write_all(data->get(), kBegin + run * kPage, bytes + (run * kPage - offset),
                         bytes_of_pages(run, page));
    }
    if (failed == 0) failed = CacheFile::append(*log, lines);
    const std::uint64_t after = disk_bytes_of(data->get());
    account.settle(taken, std::max(after - std::min(before, after), taken - left * kPage));
    folder.tell_of_failure(failed);
    read_log();
    return failed == 0;
  } catch (const std::exception&) {
    return false;  // memory is short
  }
}

// ---- readers of the mapping, and statistics ----

void CachedObject::announce(std::span<const FileRange> ranges) const noexcept {
  for (const FileRange& each : ranges) {
    if (each.offset >= bytes_) continue;
    advise_mapping(file_mapping_, kBegin + each.offset, std::min(each.bytes, bytes_ - each.offset));
  }
}

bool CachedObject::is_in_memory(std::uint64_t offset) const noexcept {
  const CacheFile::Descriptor file = file_.open_lines();
  return file == nullptr || cached_in_file(file->get(), kBegin + offset).value_or(true);
}

void CachedObject::count(std::uint64_t served, std::uint64_t fetched) const noexcept {
  const std::uint64_t counted = served_.fetch_add(served, std::memory_order_relaxed) + served +
                                fetched_.fetch_add(fetched, std::memory_order_relaxed) + fetched;
  if (counted >= kCountedAtOnce) write_counts();
}

void CachedObject::write_counts() const noexcept {
  std::uint64_t served = served_.exchange(0), fetched = fetched_.exchange(0);
  if (served + fetched == 0 || !file_.folder().may_write() || file_.folder().is_broken()) return;
  const CacheFile::Descriptor file = file_.open_lines();
  while (file != nullptr && served + fetched > 0) {
    CacheLine line;
    line.kind = CacheLineKind::traffic;
    line.first = static_cast<std::uint32_t>(std::min<std::uint64_t>(served, UINT32_MAX));
    line.second = static_cast<std::uint32_t>(std::min<std::uint64_t>(fetched, UINT32_MAX));
    if (CacheFile::append(*file, {&line, 1}) != 0) return;
    served -= line.first;
    fetched -= line.second;
  }
}

}  // namespace tfrfast
