#include "core/storage/cache/cached_object.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "core/base/process.h"
#include "core/base/warnings.h"
#include "core/crc32c/crc32c.h"
#include "core/storage/cache/cache_writer.h"
#include "core/storage/fault_guard.h"
#include "core/storage/local/system_calls.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kPage = 4096;
// The end of the first page is zero, or held counts of older versions.
constexpr std::size_t kHeaderBytes = kPage - 16;

std::atomic<std::uint64_t> bytes_read{0};
std::atomic<std::size_t> open_objects{0};

std::uint64_t whole_pages(std::uint64_t bytes) noexcept {
  return (bytes + kPage - 1) / kPage * kPage;
}

// The beginning of a file that keeps this object. Empty if the names are too long.
std::string header_of(const std::string& url, const std::string& identity,
                      std::uint64_t object_bytes) {
  std::string header = "tfrfast cache 3";
  for (const std::string& each : {url, identity, std::to_string(object_bytes)}) {
    header += '\0';
    header += each;
  }
  if (header.size() >= kHeaderBytes) return "";
  header.resize(kHeaderBytes);
  return header;
}

// Appends a range, or extends the last range if at most `gap` bytes lie between.
void add_range(std::vector<FileRange>& ranges, std::uint64_t begin, std::uint64_t end,
               std::uint64_t gap) {
  if (ranges.empty() || begin - (ranges.back().offset + ranges.back().bytes) > gap) {
    ranges.push_back({begin, 0});
  }
  ranges.back().bytes = end - ranges.back().offset;
}

std::string read_header(int file) {
  std::string header(kHeaderBytes, '\0');
  const ssize_t got = ::pread(file, header.data(), header.size(), 0);
  return got == static_cast<ssize_t>(header.size()) ? header : "";
}

}  // namespace

std::uint64_t cache_bytes_read() noexcept {
  return bytes_read.load(std::memory_order_relaxed);
}

// ---- the file ----

std::shared_ptr<CachedObject> CachedObject::open(std::shared_ptr<const CacheSet> set,
                                                 const std::string& url,
                                                 const std::string& identity, std::uint64_t bytes,
                                                 std::vector<std::uint64_t> block_ends) noexcept {
  try {
    if (set == nullptr || bytes == 0) return nullptr;
    std::shared_ptr<CachedObject> made(
        new CachedObject(std::move(set), url, identity, bytes, std::move(block_ends)));
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
                           const std::string& identity, std::uint64_t bytes,
                           std::vector<std::uint64_t> block_ends)
    : set_(std::move(set)),
      header_(header_of(url, identity, bytes)),
      name_(set_->name_of(url)),
      bytes_(bytes),
      block_ends_(std::move(block_ends)),
      block_count_(block_of(bytes - 1) + 1),
      bytes_begin_(kPage + whole_pages(block_count_ * sizeof(Line))),
      lines_(block_count_) {
  ++open_objects;
}

CachedObject::~CachedObject() {
  SharedDescriptors::instance().forget(this);
  if (file_mapping_ != nullptr) {
    ::munmap(file_mapping_, static_cast<std::size_t>(bytes_begin_ + bytes_));
  }
  --open_objects;
}

int CachedObject::open_file(int flags) const noexcept {
  return open_below(set_->folder().descriptor(), name_, flags);
}

// Whether the file keeps this object, and has its whole size.
bool CachedObject::is_ours(int file) const {
  struct stat status;
  return file >= 0 && ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
         static_cast<std::uint64_t>(status.st_size) == bytes_begin_ + bytes_ &&
         read_header(file) == header_;
}

bool CachedObject::begin() {
  install_fault_guard();
  if (header_.empty()) return false;
  // Another process may make the file at the same time.
  for (int i = 0; i < 3; ++i) {
    const FileDescriptor file(open_file(O_RDONLY));
    struct stat status;
    if (is_ours(file.get()) && ::fstat(file.get(), &status) == 0) {
      device_ = static_cast<std::uint64_t>(status.st_dev);
      inode_ = static_cast<std::uint64_t>(status.st_ino);
      void* const mapping = ::mmap(nullptr, static_cast<std::size_t>(bytes_begin_ + bytes_),
                                   PROT_READ, MAP_SHARED, file.get(), 0);
      if (mapping == MAP_FAILED) return false;
      file_mapping_ = mapping;
      mapping_ = static_cast<const std::uint8_t*>(mapping) + bytes_begin_;
      return true;
    }
    if (!make()) return false;
  }
  return false;
}

// Makes the file, in place of a file of another version and of a damaged file. The file gets its
// name when it is complete, so a file that another process has just made stays.
bool CachedObject::make() const {
  CacheFolder& folder = set_->folder();
  // The header, a page of the table, and a part of the folder.
  constexpr std::uint64_t kNeeded = 3 * kPage;
  if (folder.space_for(kNeeded) < kNeeded) return false;
  static std::atomic<std::uint64_t> serial{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const int root = folder.descriptor();
  const std::string unfinished =
      set_->name_of(std::to_string(process_number()) + " " + std::to_string(serial++) + " " +
                    std::to_string(now));
  const FileDescriptor made(open_below(root, unfinished, O_WRONLY | O_CREAT | O_EXCL, 0600));
  int failed = made.get() < 0 ? errno : 0;
  if (failed == 0 && ::ftruncate(made.get(), static_cast<off_t>(bytes_begin_ + bytes_)) != 0) {
    failed = errno;
  }
  if (failed == 0) failed = write_at(made.get(), 0, header_.data(), header_.size());
  if (failed == 0) {
    const FileDescriptor other(open_file(O_RDONLY));
    struct stat opened, named;
    // Between the two looks, another process may have replaced the file.
    if (other.get() >= 0 && !is_ours(other.get()) && ::fstat(other.get(), &opened) == 0 &&
        ::fstatat(root, name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        opened.st_ino == named.st_ino) {
      ::unlinkat(root, name_.c_str(), 0);
    }
    if (::linkat(root, unfinished.c_str(), root, name_.c_str(), 0) != 0 && errno != EEXIST) {
      failed = errno;
    }
    folder.count_written(kNeeded);
  }
  if (made.get() >= 0) ::unlinkat(root, unfinished.c_str(), 0);
  folder.tell_of_failure(failed);
  return failed == 0;
}

// ---- blocks ----

std::size_t CachedObject::block_of(std::uint64_t offset) const noexcept {
  if (block_ends_.empty()) return static_cast<std::size_t>(offset / kCacheBlockBytes);
  const auto end = std::upper_bound(block_ends_.begin(), block_ends_.end(), offset);
  return static_cast<std::size_t>(end - block_ends_.begin());
}

FileRange CachedObject::range_of(std::size_t block) const noexcept {
  if (block_ends_.empty()) {
    const std::uint64_t begin = block * kCacheBlockBytes;
    return {begin, std::min(kCacheBlockBytes, bytes_ - begin)};
  }
  const std::uint64_t begin = block == 0 ? 0 : block_ends_[block - 1];
  return {begin, block_ends_[block] - begin};
}

// The line in the file.
CachedObject::Line CachedObject::line(std::size_t block) const noexcept {
  Line found;
  Line* const out = &found;
  const auto* const from =
      static_cast<const std::uint8_t*>(file_mapping_) + kPage + block * sizeof(Line);
  return run_guarded([=] { std::memcpy(out, from, sizeof(Line)); }) ? found : Line{};
}

void CachedObject::judge(std::size_t block, Line line) const noexcept {
  const Line before = lines_[block].exchange(line, std::memory_order_acq_rel);
  if (line.state == BlockState::right && before.state != BlockState::right) ++right_blocks_;
  if (line.state != BlockState::right && before.state == BlockState::right) --right_blocks_;
}

// Compares a block with its line, once for each line.
bool CachedObject::is_right(std::size_t block) const noexcept {
  if (lines_[block].load(std::memory_order_acquire).state == BlockState::right) return true;
  if (!is_there(block)) return false;
  Line found = line(block);
  const FileRange range = range_of(block);
  const std::uint8_t* const from = mapping_ + range.offset;
  std::uint32_t crc = 0;
  std::uint32_t* const out = &crc;
  const bool is_readable =
      run_guarded([=] { *out = crc32c(from, static_cast<std::size_t>(range.bytes)); });
  found.state = is_readable && crc == found.crc ? BlockState::right : BlockState::wrong;
  judge(block, found);
  return found.state == BlockState::right;
}

// Whether the block is present, and was not found to be wrong.
bool CachedObject::is_there(std::size_t block) const noexcept {
  const Line known = lines_[block].load(std::memory_order_acquire);
  if (known.state == BlockState::right) return true;
  const Line found = line(block);
  return found.state == BlockState::present &&
         !(known.state == BlockState::wrong && known.crc == found.crc);
}

// ---- reading ----

std::size_t CachedObject::read(std::uint64_t offset, std::uint8_t* out,
                               std::size_t count) const noexcept {
  if (count == 0 || offset >= bytes_) return 0;
  const std::size_t first = block_of(offset), last = block_of(offset + count - 1);
  std::size_t block = first;
  while (block <= last && is_right(block)) ++block;
  if (block == first) return CacheWriter::instance().read_waiting(*this, offset, out, count);
  const auto found =
      block > last ? count : static_cast<std::size_t>(range_of(block).offset - offset);
  const std::uint8_t* const from = mapping_ + offset;
  if (!run_guarded([=] { std::memcpy(out, from, found); })) {
    while (block-- > first)
      judge(block, {line(block).crc, BlockState::wrong});  // the file was cut short
    return 0;
  }
  bytes_read.fetch_add(found, std::memory_order_relaxed);
  return found;
}

bool CachedObject::has(std::uint64_t offset, std::uint64_t count) const noexcept {
  std::size_t block = block_of(offset);
  while (block < block_count_ && range_of(block).offset < offset + count) {
    if (!is_there(block++)) return false;
  }
  return true;
}

const std::uint8_t* CachedObject::whole() const noexcept {
  return right_blocks_.load(std::memory_order_acquire) == block_count_ ? mapping_ : nullptr;
}

std::vector<FileRange> CachedObject::missing(std::span<const FileRange> wanted,
                                             std::uint64_t gap_bytes) const noexcept {
  std::vector<FileRange> ranges;
  std::uint64_t needed = 0, whole_end = 0;
  try {
    for (const FileRange& each : wanted) {
      const std::uint64_t end = each.offset + each.bytes;
      for (std::uint64_t at = std::max(each.offset, whole_end); at < end;) {
        const std::size_t block = block_of(at);
        const FileRange range = range_of(block);
        const std::uint64_t begin = at;
        at = std::min(end, range.offset + range.bytes);
        if (is_there(block) || CacheWriter::instance().has_waiting(*this, begin)) continue;
        if (!is_gone_ && set_->folder().space_for(needed + range.bytes) == needed + range.bytes) {
          needed += range.bytes;
          whole_end = range.offset + range.bytes;
          add_range(ranges, range.offset, whole_end, 0);
        } else {
          add_range(ranges, begin, at, gap_bytes);
        }
      }
    }
  } catch (const std::exception&) {
    // Memory is short. The reader will request the bytes past the cache.
  }
  return ranges;
}

// ---- writing ----

void CachedObject::replace(std::uint64_t offset, const std::uint8_t* bytes,
                           std::uint64_t count) noexcept {
  if (write(offset, bytes, count, true)) return;
  for (std::size_t block = block_of(offset); block <= block_of(offset + count - 1); ++block) {
    judge(block, {line(block).crc, BlockState::wrong});
  }
}

// Writes the blocks of the range: all, or the absent blocks as far as there is space. False if any
// could not be written.
bool CachedObject::write(std::uint64_t offset, const std::uint8_t* bytes, std::uint64_t count,
                         bool anew) noexcept {
  CacheFolder& folder = set_->folder();
  if (is_gone_ || !folder.may_write() || folder.is_broken()) return false;
  const FileDescriptor file(open_file(O_RDWR));
  struct stat status;
  // Writing to a file that was cut short would make it grow, with zeros in the gap.
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0 ||
      static_cast<std::uint64_t>(status.st_dev) != device_ ||
      static_cast<std::uint64_t>(status.st_ino) != inode_ ||
      static_cast<std::uint64_t>(status.st_size) != bytes_begin_ + bytes_) {
    is_gone_ = true;
    return false;
  }
  for (std::size_t block = block_of(offset); block < block_count_; ++block) {
    const FileRange range = range_of(block);
    if (range.offset < offset) continue;
    if (range.offset + range.bytes > offset + count) break;
    if (!anew && is_right(block)) continue;
    if (!anew && folder.space_for(range.bytes) < range.bytes) return false;
    const std::uint8_t* const from = bytes + (range.offset - offset);
    const Line line{crc32c(from, static_cast<std::size_t>(range.bytes)), BlockState::present};
    int failed = write_at(file.get(), bytes_begin_ + range.offset, from, range.bytes);
    if (failed == 0) {
      failed = write_at(file.get(), kPage + block * sizeof line, &line, sizeof line);
    }
    folder.tell_of_failure(failed);
    if (failed != 0) return false;
    judge(block, {});  // the same line may have been wrong before
    if (!anew) folder.count_written(range.bytes);
  }
  return true;
}

// ---- readers of the mapping ----

void CachedObject::announce(std::span<const FileRange> ranges) const noexcept {
  for (const FileRange& each : ranges) {
    if (each.offset >= bytes_) continue;
    advise_mapping(file_mapping_, bytes_begin_ + each.offset,
                   std::min(each.bytes, bytes_ - each.offset));
  }
}

bool CachedObject::is_in_memory(std::uint64_t offset) const noexcept {
  try {
    const auto file = SharedDescriptors::instance().acquire(
        this, [this] { return std::make_shared<const FileDescriptor>(open_file(O_RDONLY)); });
    return cached_in_file(file->get(), bytes_begin_ + offset).value_or(true);
  } catch (const std::exception&) {
    return true;  // memory is short
  }
}

}  // namespace tfrfast
