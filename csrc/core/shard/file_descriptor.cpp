#include "core/shard/file_descriptor.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"

namespace tfrfast {

FileDescriptor::FileDescriptor(const std::string& path) {
  do {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) throw_system_error(errno, "Opening", path);
}

FileDescriptor::~FileDescriptor() {
  ::close(descriptor_);
}

SharedDescriptors::SharedDescriptors() {
  // A child forked while another thread is in here must not inherit a locked mutex.
  ::pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                   [] { instance().mutex_.unlock(); });
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
  std::shared_ptr<const FileDescriptor> evicted;  // closed after the lock is gone
  std::lock_guard lock(mutex_);
  if (const auto found = by_owner_.find(owner); found != by_owner_.end()) {
    return found->second->file;  // another thread was faster
  }
  recent_.push_front({owner, opened});
  by_owner_[owner] = recent_.begin();
  if (recent_.size() > kMost) {
    evicted = std::move(recent_.back().file);
    by_owner_.erase(recent_.back().owner);
    recent_.pop_back();
  }
  return opened;
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
