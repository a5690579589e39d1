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
    std::shared_ptr<CachedObject> made(new CachedObject(std::move(set), {url, identity, bytes}));
    if (open_objects > kMaxOpen) {
      warn_once("cached objects",
                "More than " + std::to_string(kMaxOpen) +
                    " objects of caches are open in this process. The others come from the "
                    "network each time. Larger shards are fewer.");
      return nullptr;
    }
    return made->begin() ? made : nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

CachedObject::CachedObject(std::shared_ptr<const CacheSet> set, const CacheHeader& header)
    : file_(std::move(set), header),
      bytes_(header.object_bytes),
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
  const CacheFile::Descriptor file = file_.descriptor();
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

// Sets a block to `desired`. If the block is not `expected`, stores the block there and returns
// false.
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

std::uint64_t CachedObject::bytes_of_pages(std::uint64_t first, std::uint64_t end) const noexcept {
  return std::min(end * kPage, bytes_) - first * kPage;
}

// The block's pages must be verified again.
void CachedObject::forget_known(std::uint64_t number) const noexcept {
  for (Block was = block(number); !exchange(number, was, {was.crc, was.present, 0});) {
  }
}

// Compares a block's present pages with the checksum. If the checksum is wrong, the pages no longer
// count as present.
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
    // The file was cut short. Verify the rest again.
    for (std::uint64_t number = block_of(first); number <= block_of(page - 1); ++number) {
      forget_known(number);
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
  if (line.block >= blocks_.size() || line.pages == 0 ||
      (line.pages & ~pages_of_block(line.block)) != 0) {
    return;
  }
  switch (line.kind) {
    case CacheLineKind::kept: {
      Block was = block(line.block);
      Block now;
      do {
        // Pages written again were wrong, or are unchanged.
        const bool is_more = (was.present & line.pages) == 0;
        now = is_more ? Block{was.crc ^ line.first, PageMask(was.present | line.pages), was.known}
                      : Block{line.first, line.pages, 0};
      } while (!exchange(line.block, was, now));
      return claims_.take_kept(line);
    }
    case CacheLineKind::claimed:
      return claims_.take_claim(line);
    case CacheLineKind::released:
      return claims_.take_release(line);
    case CacheLineKind::traffic:
      return;
  }
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

// Makes lines for runs of absent pages that no process fetches. Each run has some wanted bytes.
std::vector<CacheLine> CachedObject::lines_to_claim(std::span<const FileRange> spans,
                                                    std::span<const FileRange> wanted,
                                                    std::uint64_t space_pages) const {
  std::vector<CacheLine> lines;
  for (const FileRange& each : spans) {
    const std::uint64_t end = each.offset + each.bytes;
    std::uint64_t run = each.offset;
    PageMask free = 0;
    for (std::uint64_t page = each.offset; page <= end; ++page) {
      if (page < end && (page == each.offset || page % kCacheBlockPages == 0)) {
        const std::uint64_t number = block_of(page);
        free = static_cast<PageMask>(~(block(number).present | claims_.of_all(number)));
      }
      if (page < end && (free & bit_of(page)) != 0 && page - run < space_pages) continue;
      // The run ends before this page.
      const auto after = std::partition_point(
          wanted.begin(), wanted.end(),
          [&](const FileRange& range) { return range.offset + range.bytes <= run * kPage; });
      if (page > run && after != wanted.end() && after->offset < page * kPage) {
        for_blocks(run, page, [&](std::uint64_t number, PageMask pages) {
          lines.push_back(claims_.claim_line(number, pages));
        });
        space_pages -= page - run;
      }
      run = page + 1;
    }
  }
  return lines;
}

// Adds the pages of a claim that are this process's. Another process may have been faster.
void CachedObject::add_own(const CacheLine& claim, std::vector<FileRange>& claimed) const {
  const PageMask own = claim.pages & claims_.own(claim.block);
  for (std::uint64_t i = 0; i < kCacheBlockPages; ++i) {
    const std::uint64_t page = claim.block * kCacheBlockPages + i;
    if ((own >> i & 1) != 0) add_range(claimed, page * kPage, bytes_of_pages(page, page + 1));
  }
}

// Adds the wanted bytes outside all pages that are present or being fetched.
void CachedObject::add_passing(const FileRange& wanted, std::vector<FileRange>& passing) const {
  const std::uint64_t end = wanted.offset + wanted.bytes;
  for (std::uint64_t at = wanted.offset; at < end;) {
    const std::uint64_t page = at / kPage;
    const std::uint64_t stop = std::min(end, (page + 1) * kPage);
    const PageMask there = block(block_of(page)).present | claims_.of_all(block_of(page));
    if ((there & bit_of(page)) == 0) add_range(passing, at, stop - at);
    at = stop;
  }
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
    const auto file = absent == 0 ? nullptr : file_.descriptor();
    // Without the lock, because other sets may have to give way.
    std::uint64_t space = file == nullptr ? 0 : file_.folder().space_for(absent * kPage) / kPage;
    int failed = 0;
    {
      const std::lock_guard lock(cache_mutex());
      if (file != nullptr) refresh(*file);
      if (file_.has_many_lines()) space = 0;
      const std::vector<CacheLine> lines = lines_to_claim(spans, wanted, space);
      if (!lines.empty()) failed = file_.append(*file, lines);
      if (!lines.empty() && failed == 0) {
        refresh(*file);
        for (const CacheLine& each : lines) add_own(each, missing.claimed);
      }
      for (const FileRange& each : wanted) add_passing(each, missing.passing);
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
    {
      const std::lock_guard lock(cache_mutex());
      if (claims_.is_empty()) return;
    }
    const auto file = file_.descriptor();
    std::vector<CacheLine> lines;
    const std::lock_guard lock(cache_mutex());
    for_blocks(offset / kPage, cache_pages_of(offset + count),
               [&](std::uint64_t number, PageMask pages) {
                 const PageMask own = claims_.own(number) & pages;
                 if (own != 0) lines.push_back(claims_.release_line(number, own));
               });
    for (const CacheLine& each : lines) claims_.take_release(each);
    if (file != nullptr && file_.append(*file, lines) == 0) refresh(*file);
  } catch (const std::exception&) {
    // Memory is short: other processes wait until the claim expires.
  }
}

bool CachedObject::is_awaited(std::uint64_t offset, std::uint64_t count) const noexcept {
  if (count == 0) return false;
  const auto file = file_.descriptor();
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
  const auto file = file_.folder().is_broken() ? nullptr : file_.descriptor();
  if (file != nullptr) {
    file_.folder().tell_of_failure(write_pages(*file, offset, bytes, count, true));
    const std::lock_guard lock(cache_mutex());
    refresh(*file);
  }
  release(offset, count);
}

void CachedObject::replace(std::uint64_t offset, const std::uint8_t* bytes,
                           std::uint64_t count) noexcept {
  CacheFolder& folder = file_.folder();
  const bool may_write = folder.may_write() && !folder.is_broken();
  const auto file = may_write ? file_.descriptor() : nullptr;
  const int failed = file == nullptr ? ESTALE : write_pages(*file, offset, bytes, count, false);
  if (failed == 0) {
    const std::lock_guard lock(cache_mutex());
    return refresh(*file);
  }
  folder.tell_of_failure(failed);
  for_blocks(offset / kPage, cache_pages_of(offset + count), [&](std::uint64_t number, PageMask) {
    for (Block was = block(number); !exchange(number, was, {});) {
    }
  });
}

// Returns 0 or an errno. Leaves out pages without space.
int CachedObject::write_pages(const FileDescriptor& file, std::uint64_t offset,
                              const std::uint8_t* bytes, std::uint64_t count,
                              bool only_missing) noexcept {
  try {
    const std::uint64_t stop = offset + count;
    const std::uint64_t first = cache_pages_of(offset);
    const std::uint64_t end = stop == bytes_ ? page_count_ : stop / kPage;
    CacheFolder::Account account(file_.folder());
    if (!account.is_open()) return EAGAIN;
    {
      const std::lock_guard lock(cache_mutex());
      refresh(file);
    }
    const auto data = file_.descriptor_of_bytes();
    if (data == nullptr) return ESTALE;
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
            page_checksum(page, bytes + (page * kPage - offset),
                          static_cast<std::size_t>(bytes_of_pages(page, page + 1)));
      }
      if (page == run) continue;
      failed = write_all(data->get(), kBegin + run * kPage, bytes + (run * kPage - offset),
                         bytes_of_pages(run, page));
    }
    if (failed == 0) failed = file_.append(file, lines);
    const std::uint64_t after = disk_bytes_of(data->get());
    account.settle(taken, std::max(after - std::min(before, after), taken - left * kPage));
    return failed;
  } catch (const std::exception&) {
    return ENOMEM;
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
  const auto file = file_.descriptor();
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
  const auto file = file_.descriptor();
  while (file != nullptr && served + fetched > 0) {
    CacheLine line;
    line.kind = CacheLineKind::traffic;
    line.first = static_cast<std::uint32_t>(std::min<std::uint64_t>(served, UINT32_MAX));
    line.second = static_cast<std::uint32_t>(std::min<std::uint64_t>(fetched, UINT32_MAX));
    if (file_.append(*file, {&line, 1}) != 0) return;
    served -= line.first;
    fetched -= line.second;
  }
}

}  // namespace tfrfast
