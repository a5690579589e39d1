#include "core/storage/local/file_descriptor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <utility>

#include "core/base/error.h"
#include "core/base/fork.h"

namespace tfrfast {
namespace {

// Leave descriptors for the rest of the process.
std::size_t max_shared_descriptors() {
  return std::min(std::max<std::size_t>(max_descriptors() / 4, 1), SharedDescriptors::kMax);
}

// A place in the second GiB, where programs seldom are.
off_t new_mark() noexcept {
  constexpr std::uint32_t kGiB = std::uint32_t{1} << 30;
  static std::atomic<std::uint32_t> serial{
      static_cast<std::uint32_t>(std::chrono::system_clock::now().time_since_epoch().count())};
  return static_cast<off_t>(kGiB + serial.fetch_add(1, std::memory_order_relaxed) % kGiB);
}

}  // namespace

std::size_t max_descriptors() noexcept {
  constexpr std::size_t kUsual = 1024;
  rlimit limit;
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<std::size_t>(limit.rlim_cur)
                                                 : kUsual;
}

bool may_open_again() noexcept {
  const int failed = errno;
  const bool may = failed == EINTR || ((failed == EMFILE || failed == ENFILE) &&
                                       SharedDescriptors::instance().give_up_one());
  errno = failed;
  return may;
}

FileDescriptor::FileDescriptor(const std::string& path) : FileDescriptor() {
  // O_NONBLOCK: a file replaced by a pipe must not make the reader wait for a writer.
  int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  int opened;
  do {
    opened = ::open(path.c_str(), flags);
    // Wait for a file that its server has lent to another client.
    if (opened < 0 && errno == EWOULDBLOCK) opened = ::open(path.c_str(), flags &= ~O_NONBLOCK);
  } while (opened < 0 && may_open_again());
  if (opened < 0) throw_system_error(errno, "Opening", path);
  if (const off_t mark = new_mark(); ::lseek(opened, mark, SEEK_SET) == mark) {
    number_ = opened;
    mark_ = mark;
    return;
  }
  *this = FileDescriptor(opened);
  if (number_ < 0) throw_system_error(errno, "Inspecting", path);
}

FileDescriptor::FileDescriptor(int opened) noexcept : number_(opened) {
  struct stat status;
  if (opened < 0) return;
  if (::fstat(opened, &status) != 0) {
    const int failed = errno;
    ::close(std::exchange(number_, -1));
    errno = failed;
    return;
  }
  device_ = static_cast<std::uint64_t>(status.st_dev);
  inode_ = static_cast<std::uint64_t>(status.st_ino);
  flags_ = ::fcntl(opened, F_GETFL);
}

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : number_(std::exchange(other.number_, -1)),
      mark_(other.mark_),
      flags_(other.flags_),
      device_(other.device_),
      inode_(other.inode_) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(number_, other.number_);
  std::swap(mark_, other.mark_);
  std::swap(flags_, other.flags_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  return *this;
}

// The flags differ where the inode does not: a new file often gets the inode of a removed one.
bool FileDescriptor::is_open() const noexcept {
  if (mark_ != 0) return number_ >= 0 && ::lseek(number_, 0, SEEK_CUR) == mark_;
  struct stat status;
  return number_ >= 0 && ::fstat(number_, &status) == 0 &&
         static_cast<std::uint64_t>(status.st_dev) == device_ &&
         static_cast<std::uint64_t>(status.st_ino) == inode_ && ::fcntl(number_, F_GETFL) == flags_;
}

int FileDescriptor::close() noexcept {
  const int closing = get();
  number_ = -1;
  return closing < 0 || ::close(closing) == 0 ? 0 : errno;
}

int write_at(int descriptor, std::uint64_t offset, const void* bytes, std::size_t count) noexcept {
  const auto* from = static_cast<const std::uint8_t*>(bytes);
  while (count > 0) {
    const ssize_t written = ::pwrite(descriptor, from, count, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return ENOSPC;
    from += written;
    offset += static_cast<std::uint64_t>(written);
    count -= static_cast<std::size_t>(written);
  }
  return 0;
}

// No thread of the child uses a descriptor of the pool.
void forget_descriptors_in_child() noexcept {
  SharedDescriptors& shared = SharedDescriptors::instance();
  shared.by_owner_.clear();
  shared.recent_.clear();
}

SharedDescriptors::SharedDescriptors() {
  constexpr auto mutex = []() -> std::mutex& { return instance().mutex_; };
  make_fork_wait_for<mutex, forget_descriptors_in_child>();
}

SharedDescriptors& SharedDescriptors::instance() {
  static auto* shared = new SharedDescriptors;  // outlives every static that may still read
  return *shared;
}

std::shared_ptr<const FileDescriptor> SharedDescriptors::acquire(const void* owner,
                                                                 const Open& open) {
  {
    std::lock_guard lock(mutex_);
    if (const auto found = by_owner_.find(owner); found != by_owner_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return recent_.front().file;
    }
  }
  std::shared_ptr<const FileDescriptor> opened = open();
  const std::size_t max_count = max_shared_descriptors();
  std::list<OwnedFile> given_up;  // closed after the lock is released
  std::lock_guard lock(mutex_);
  if (const auto found = by_owner_.find(owner); found != by_owner_.end()) {
    return found->second->file;  // another thread was faster
  }
  recent_.push_front({owner, opened});
  by_owner_[owner] = recent_.begin();
  while (recent_.size() > max_count) {
    by_owner_.erase(recent_.back().owner);
    given_up.splice(given_up.begin(), recent_, std::prev(recent_.end()));
  }
  return opened;
}

bool SharedDescriptors::give_up_one() noexcept {
  std::list<OwnedFile> given_up;
  std::lock_guard lock(mutex_);
  if (recent_.empty()) return false;
  by_owner_.erase(recent_.back().owner);
  given_up.splice(given_up.begin(), recent_, std::prev(recent_.end()));
  return true;
}

void SharedDescriptors::forget(const void* owner) noexcept {
  std::shared_ptr<const FileDescriptor> closing;
  std::lock_guard lock(mutex_);
  if (const auto found = by_owner_.find(owner); found != by_owner_.end()) {
    closing = std::move(found->second->file);
    recent_.erase(found->second);
    by_owner_.erase(found);
  }
}

}  // namespace tfrfast
