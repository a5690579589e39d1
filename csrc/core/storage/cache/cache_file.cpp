#include "core/storage/cache/cache_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

namespace tfrfast {
namespace {

// The limit on a log's growth beyond one line per block.
constexpr std::uint64_t kMaxLogGrowth = 16;
constexpr std::uint64_t kMaxSpareLog = std::uint64_t{1} << 20;

// Reads up to `count` bytes from `offset` on.
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
  return CacheHeader::decode(read_bytes(descriptor, 0, CacheHeader::kMaxBytes));
}

// Calls take(line) for the lines from `at` to `end`. Returns the place of the next line.
std::uint64_t read_lines(int descriptor, std::uint64_t at, std::uint64_t end,
                         const CacheFile::Take& take) {
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
  return CacheFile::kObjectBegin + cache_pages_of(object_bytes) * kCachePageBytes;
}

}  // namespace

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
    if (begin > end) return false;
    entry.url = std::move(header->url);
    entry.object_bytes = header->object_bytes;
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

CacheFile::CacheFile(std::shared_ptr<const CacheSet> set, CacheHeader header)
    : set_(std::move(set)),
      header_(std::move(header)),
      name_(set_->name_of(header_.url)),
      log_begin_(log_begin_of(header_.object_bytes)),
      log_end_(log_begin_) {}

CacheFile::~CacheFile() {
  SharedDescriptors::instance().forget(this);
}

bool CacheFile::open() {
  return open_existing() || make();
}

bool CacheFile::is_still(const FileDescriptor& file) const noexcept {
  struct stat status;
  return ::fstat(file.get(), &status) == 0 && status.st_nlink > 0 &&
         static_cast<std::uint64_t>(status.st_dev) == device_ &&
         static_cast<std::uint64_t>(status.st_ino) == inode_ &&
         static_cast<std::uint64_t>(status.st_size) >= log_begin_;
}

// False if the file does not exist, belongs to another object, or is damaged.
bool CacheFile::open_existing() {
  const int opened =
      open_below(folder().descriptor(), name_, folder().may_write() ? O_RDWR | O_APPEND : O_RDONLY);
  if (opened < 0) return false;
  const auto file = std::make_shared<const FileDescriptor>(opened);
  struct stat status;
  const auto found = read_header(opened);
  if (::fstat(opened, &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<std::uint64_t>(status.st_size) < log_begin_ || !found ||
      found->identity != header_.identity || found->object_bytes != header_.object_bytes) {
    return false;
  }
  device_ = static_cast<std::uint64_t>(status.st_dev);
  inode_ = static_cast<std::uint64_t>(status.st_ino);
  SharedDescriptors::instance().acquire(this, [&] { return file; });
  return true;
}

// Makes the file, in place of any file with its name. False if the disk has no space.
bool CacheFile::make() {
  // The header, the first page of the log, which is appended to without the lock, and a part of the
  // folder.
  constexpr std::uint64_t kNeeded = 3 * kCachePageBytes;
  const std::vector<std::uint8_t> first = header_.encode();
  if (first.empty() || folder().space_for(kNeeded) < kNeeded) return false;
  CacheFolder::Account account(folder());
  if (!account.is_open()) return false;
  if (open_existing()) return true;  // another process was faster
  const int root = folder().descriptor();
  struct stat status;
  if (::fstatat(root, name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      ::unlinkat(root, name_.c_str(), 0) == 0) {
    account.settle(static_cast<std::uint64_t>(status.st_blocks) * 512, 0);
  }
  if (account.take(kNeeded) < kNeeded) return false;
  const int made = open_below(root, name_, O_WRONLY | O_CREAT | O_EXCL, 0600);
  int failed = made < 0 ? errno : 0;
  if (made >= 0) {
    const FileDescriptor closed(made);
    // The header is written last, and makes the file complete.
    if (::ftruncate(made, static_cast<off_t>(log_begin_)) != 0) failed = errno;
    if (failed == 0) failed = write_all(made, 0, first.data(), first.size());
    if (failed == 0) account.settle(kNeeded, std::max(disk_bytes_of(made), kNeeded));
    if (failed != 0) ::unlinkat(root, name_.c_str(), 0);
  }
  if (failed == 0) return open_existing();
  account.settle(kNeeded, 0);
  folder().tell_of_failure(failed);
  return false;
}

CacheFile::Descriptor CacheFile::descriptor() const noexcept {
  if (was_removed_) return nullptr;
  try {
    Descriptor file = SharedDescriptors::instance().acquire(this, [this] {
      const int opened = open_below(folder().descriptor(), name_,
                                    folder().may_write() ? O_RDWR | O_APPEND : O_RDONLY);
      if (opened < 0) throw std::system_error(errno, std::generic_category());
      return std::make_shared<const FileDescriptor>(opened);
    });
    if (is_still(*file)) return file;
    was_removed_ = true;
  } catch (const std::system_error& error) {
    const int failed = error.code().value();
    was_removed_ = failed == ENOENT || failed == ENOTDIR || failed == ELOOP;
  } catch (const std::exception&) {
    // Memory is short.
  }
  return nullptr;
}

// descriptor() appends, whatever the offset, so a second descriptor is needed.
CacheFile::Descriptor CacheFile::descriptor_of_bytes() const noexcept {
  try {
    const int opened = open_below(folder().descriptor(), name_, O_WRONLY);
    if (opened < 0) return nullptr;
    auto file = std::make_shared<const FileDescriptor>(opened);
    return is_still(*file) ? file : nullptr;
  } catch (const std::exception&) {
    return nullptr;  // memory is short
  }
}

int CacheFile::append(const FileDescriptor& file, std::span<const CacheLine> lines) const noexcept {
  if (lines.empty()) return 0;
  try {
    const std::vector<std::uint8_t> bytes = encode_lines(lines);
    ssize_t put = 0;
    do {
      put = ::write(file.get(), bytes.data(), bytes.size());
    } while (put < 0 && errno == EINTR);
    if (put < 0) return errno;
    // A piece of a line does no harm. Do not write the rest, because other processes may have
    // written since.
    return static_cast<std::size_t>(put) == bytes.size() ? 0 : ENOSPC;
  } catch (const std::exception&) {
    return ENOMEM;
  }
}

void CacheFile::read_new_lines(const FileDescriptor& file, const Take& take) noexcept {
  struct stat status;
  if (::fstat(file.get(), &status) != 0) return;
  const auto end = static_cast<std::uint64_t>(status.st_size);
  if (end <= log_end_) return;
  try {
    log_end_ = read_lines(file.get(), log_end_, end, take);
  } catch (const std::exception&) {
    // Memory is short: the lines are read another time.
  }
}

bool CacheFile::has_many_lines() const noexcept {
  const std::uint64_t blocks = header_.object_bytes / kCacheBlockBytes + 1;
  return log_end_ - log_begin_ > kMaxSpareLog + kMaxLogGrowth * sizeof(CacheLine) * blocks;
}

}  // namespace tfrfast
