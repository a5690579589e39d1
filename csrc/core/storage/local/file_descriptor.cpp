#include "core/storage/local/file_descriptor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "core/base/error.h"
#include "core/base/fork.h"

namespace tfrfast {
namespace {

// Leave descriptors for the rest of the process.
std::size_t max_shared_descriptors() {
  return std::min(std::max<std::size_t>(max_descriptors() / 4, 1), SharedDescriptors::kMax);
}

}  // namespace

std::size_t max_descriptors() noexcept {
  constexpr std::size_t kUsual = 1024;
  rlimit limit;
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<std::size_t>(limit.rlim_cur)
                                                 : kUsual;
}

FileDescriptor::FileDescriptor(const std::string& path) {
  // O_NONBLOCK: a file replaced by a pipe must not make the reader wait for a writer.
  int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  const auto may_try_again = [&flags] {
    if (errno == EINTR) return true;
    if (errno == EWOULDBLOCK && (flags & O_NONBLOCK) != 0) {
      flags &= ~O_NONBLOCK;  // wait for a file that its server has lent to another client
      return true;
    }
    const int error = errno;
    const bool gave_up_one =
        (error == EMFILE || error == ENFILE) && SharedDescriptors::instance().give_up_one();
    errno = error;
    return gave_up_one;
  };
  do {
    descriptor_ = ::open(path.c_str(), flags);
  } while (descriptor_ < 0 && may_try_again());
  if (descriptor_ < 0) throw_system_error(errno, "Opening", path);
}

FileDescriptor::~FileDescriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

SharedDescriptors::SharedDescriptors() {
  constexpr auto mutex = []() -> std::mutex& { return instance().mutex_; };
  make_fork_wait_for<mutex>();
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
  std::list<Entry> given_up;  // closed after the lock is released
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
  std::list<Entry> given_up;
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
