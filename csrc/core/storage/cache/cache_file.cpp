#include "core/storage/cache/cache_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "core/base/encoding.h"
#include "core/crc32c/crc32c.h"

namespace tfrfast {
namespace {

constexpr EncodedKind kHeader{"file of a cache", "tfCF"};
// The limit on a log's growth beyond one line per block.
constexpr std::uint64_t kMaxLogGrowth = 16;
constexpr std::uint64_t kMaxSpareLog = std::uint64_t{1} << 20;

// A page that names an object and its version. Empty if the names are too long.
std::string header_of(const std::string& url, const std::string& identity,
                      std::uint64_t object_bytes) {
  const auto encode = [&](std::size_t spare_bytes) {
    Encoder encoder(kHeader);
    encoder.string(url);
    encoder.string(identity);
    encoder.number(object_bytes);
    encoder.string(std::string(spare_bytes, '\0'));
    return encoder.finish();
  };
  const std::size_t bytes = encode(0).size();
  return bytes > kCachePageBytes ? "" : encode(kCachePageBytes - bytes);
}

std::uint64_t log_begin_of(std::uint64_t object_bytes) noexcept {
  return CacheFile::kObjectBegin + cache_pages_of(object_bytes) * kCachePageBytes;
}

std::uint32_t check_of_line(const CacheLine& line) noexcept {
  return crc32c(reinterpret_cast<const std::uint8_t*>(&line), offsetof(CacheLine, check));
}

// Reads up to `count` bytes from `offset` on.
std::string read_bytes(int descriptor, std::uint64_t offset, std::size_t count) {
  std::string bytes(count, '\0');
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

// Calls take(line) for the lines from `at` to `end`. Returns the place of the next line.
std::uint64_t read_lines(int descriptor, std::uint64_t at, std::uint64_t end,
                         const CacheFile::Take& take) {
  constexpr std::uint64_t kAtOnce = 256 << 10;
  while (end - at >= sizeof(CacheLine)) {
    const std::string bytes =
        read_bytes(descriptor, at, static_cast<std::size_t>(std::min(kAtOnce, end - at)));
    std::size_t done = 0;
    while (bytes.size() - done >= sizeof(CacheLine)) {
      CacheLine line;
      std::memcpy(&line, bytes.data() + done, sizeof line);
      const bool is_whole = line.check == check_of_line(line);
      if (is_whole) take(line);
      // After a piece of a line, other processes have written whole lines.
      done += is_whole ? sizeof line : 1;
    }
    if (done == 0) break;
    at += done;
  }
  return at;
}

}  // namespace

int write_all(int descriptor, std::uint64_t offset, const void* bytes,
              std::uint64_t count) noexcept {
  const auto* from = static_cast<const std::uint8_t*>(bytes);
  while (count > 0) {
    const ssize_t put = ::pwrite(descriptor, from, count, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    if (put == 0) return ENOSPC;
    from += put;
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
  const FileDescriptor file(open_below(folder, name, O_RDONLY));
  struct stat status;
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return false;
  try {
    const std::string header = read_bytes(file.get(), 0, kCachePageBytes);
    Decoder decoder(kHeader, header);
    entry.url = decoder.string();
    decoder.string();
    entry.object_bytes = decoder.number();
    const std::uint64_t begin = log_begin_of(entry.object_bytes);
    const auto end = static_cast<std::uint64_t>(status.st_size);
    if (begin > end) return false;
    read_lines(file.get(), begin, end, [&](const CacheLine& line) {
      if (line.kind != CacheLineKind::traffic) return;
      entry.served_bytes += line.first;
      entry.fetched_bytes += line.second;
    });
    return true;
  } catch (const std::exception&) {
    return false;  // damaged, or memory is short
  }
}

CacheFile::CacheFile(std::shared_ptr<const CacheSet> set, const std::string& url,
                     const std::string& identity, std::uint64_t object_bytes)
    : set_(std::move(set)),
      header_(header_of(url, identity, object_bytes)),
      name_(set_->name_of(url)),
      log_begin_(log_begin_of(object_bytes)),
      log_end_(log_begin_) {}

CacheFile::~CacheFile() {
  SharedDescriptors::instance().forget(this);
}

bool CacheFile::open() {
  return !header_.empty() && (find() || make());
}

// False if the file does not exist, belongs to another object, or is damaged.
bool CacheFile::find() {
  const FileDescriptor file(open_below(folder().descriptor(), name_, O_RDONLY));
  struct stat status;
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<std::uint64_t>(status.st_size) < log_begin_ ||
      read_bytes(file.get(), 0, header_.size()) != header_) {
    return false;
  }
  device_ = static_cast<std::uint64_t>(status.st_dev);
  inode_ = static_cast<std::uint64_t>(status.st_ino);
  return true;
}

// Makes the file, in place of any file with its name. False if the disk has no space.
bool CacheFile::make() {
  // The header, the first page of the log, which is appended to without the lock, and a part of the
  // folder.
  constexpr std::uint64_t kNeeded = 3 * kCachePageBytes;
  if (folder().space_for(kNeeded) < kNeeded) return false;
  CacheFolder::Account account(folder());
  if (!account.is_open()) return false;
  if (find()) return true;  // another process was faster
  const int root = folder().descriptor();
  struct stat status;
  if (::fstatat(root, name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      ::unlinkat(root, name_.c_str(), 0) == 0) {
    account.settle(static_cast<std::uint64_t>(status.st_blocks) * 512, 0);
  }
  if (account.take(kNeeded) < kNeeded) return false;
  const FileDescriptor made(open_below(root, name_, O_WRONLY | O_CREAT | O_EXCL, 0600));
  int failed = made.get() < 0 ? errno : 0;
  // The header is written last, and makes the file complete.
  if (failed == 0 && ::ftruncate(made.get(), static_cast<off_t>(log_begin_)) != 0) failed = errno;
  if (failed == 0) failed = write_all(made.get(), 0, header_.data(), header_.size());
  account.settle(kNeeded, failed == 0 ? std::max(disk_bytes_of(made.get()), kNeeded) : 0);
  if (failed == 0) return find();
  if (made.get() >= 0) ::unlinkat(root, name_.c_str(), 0);
  folder().tell_of_failure(failed);
  return false;
}

bool CacheFile::is_still(const FileDescriptor& file) const noexcept {
  struct stat status;
  return file.get() >= 0 && ::fstat(file.get(), &status) == 0 && status.st_nlink > 0 &&
         static_cast<std::uint64_t>(status.st_dev) == device_ &&
         static_cast<std::uint64_t>(status.st_ino) == inode_ &&
         static_cast<std::uint64_t>(status.st_size) >= log_begin_;
}

CacheFile::Descriptor CacheFile::open_as(int flags) const {
  return std::make_shared<const FileDescriptor>(open_below(folder().descriptor(), name_, flags));
}

CacheFile::Descriptor CacheFile::open_lines() const noexcept {
  try {
    const int flags = folder().may_write() ? O_RDWR | O_APPEND : O_RDONLY;
    SharedDescriptors& shared = SharedDescriptors::instance();
    Descriptor file = shared.acquire(this, [&] { return open_as(flags); });
    if (is_still(*file)) return file;
    shared.forget(this);
  } catch (const std::exception&) {
    // Memory is short.
  }
  return nullptr;
}

// A descriptor of open_lines() appends, whatever the offset.
CacheFile::Descriptor CacheFile::open_bytes() const noexcept {
  try {
    Descriptor file = open_as(O_WRONLY);
    return is_still(*file) ? file : nullptr;
  } catch (const std::exception&) {
    return nullptr;  // memory is short
  }
}

int CacheFile::append(const FileDescriptor& file, std::span<const CacheLine> lines) noexcept {
  if (lines.empty()) return 0;
  try {
    std::vector<CacheLine> checked(lines.begin(), lines.end());
    for (CacheLine& each : checked) each.check = check_of_line(each);
    ssize_t put = 0;
    do {
      put = ::write(file.get(), checked.data(), lines.size_bytes());
    } while (put < 0 && errno == EINTR);
    if (put < 0) return errno;
    // A piece of a line does no harm. Do not write the rest, because other processes may have
    // written since.
    return static_cast<std::size_t>(put) == lines.size_bytes() ? 0 : ENOSPC;
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
  const std::uint64_t blocks = (log_begin_ - kObjectBegin) / kCacheBlockBytes + 1;
  return log_end_ - log_begin_ > kMaxSpareLog + kMaxLogGrowth * sizeof(CacheLine) * blocks;
}

}  // namespace tfrfast
