// File descriptors: one that closes itself, and the few that many files share.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace tfrfast {

class FileDescriptor {
 public:
  explicit FileDescriptor(const std::string& path);  // read-only; throws Error io
  ~FileDescriptor();
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

// The most recently used descriptors of this process, at most kMost of them plus those in use.
// Thread-safe. Owners are told apart by address and must call forget() before they go.
class SharedDescriptors {
 public:
  static constexpr std::size_t kMost = 128;

  static SharedDescriptors& instance();

  using Open = std::function<std::shared_ptr<const FileDescriptor>()>;
  // The owner's descriptor, opened by `open` if it has none; stays open while it is held.
  std::shared_ptr<const FileDescriptor> acquire(const void* owner, const Open& open);
  void forget(const void* owner) noexcept;

 private:
  SharedDescriptors();
  struct Entry {
    const void* owner;
    std::shared_ptr<const FileDescriptor> file;
  };
  std::mutex mutex_;
  std::list<Entry> recent_;  // most recently used first
  std::unordered_map<const void*, std::list<Entry>::iterator> by_owner_;
};

}  // namespace tfrfast
