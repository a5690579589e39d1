// File descriptors: a descriptor that closes itself, and a small pool for many files.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace tfrfast {

// The max number of descriptors of this process.
std::size_t max_descriptors() noexcept;

class FileDescriptor {
 public:
  explicit FileDescriptor(const std::string& path);  // for reading; throws Error io
  // takes over the descriptor
  explicit FileDescriptor(int opened) noexcept : descriptor_(opened) {}
  ~FileDescriptor();
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

// The most recently used descriptors of this process: at most kMax, and at most a quarter of the
// process's max. A descriptor in use stays open beyond the limits. If the system has no more
// descriptors, the least recently used are closed. Thread-safe. Owners are identified by address,
// and must call forget() before they are destroyed.
class SharedDescriptors {
 public:
  static constexpr std::size_t kMax = 128;

  static SharedDescriptors& instance();

  using Open = std::function<std::shared_ptr<const FileDescriptor>()>;
  // Returns the owner's descriptor, opened by `open` if necessary. The descriptor stays open while
  // held.
  std::shared_ptr<const FileDescriptor> acquire(const void* owner, const Open& open);
  void forget(const void* owner) noexcept;
  // Drops the least recently used descriptor. False if the pool is empty.
  bool give_up_one() noexcept;

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
