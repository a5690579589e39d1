// File descriptors: one that closes itself, and a small pool that many files share.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace tfrfast {

// How many descriptors this process may have.
std::size_t max_descriptors() noexcept;

class FileDescriptor {
 public:
  explicit FileDescriptor(const std::string& path);                      // to read; throws Error io
  explicit FileDescriptor(int opened) noexcept : descriptor_(opened) {}  // closes it
  ~FileDescriptor();
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

// The most recently used descriptors of this process: at most kMax, and at most a quarter of those
// that the process may have. One that is in use stays open beyond that. Where the system has no
// more, the least recently used are closed. Thread-safe. Owners are told apart by address and must
// call forget() before they are destroyed.
class SharedDescriptors {
 public:
  static constexpr std::size_t kMax = 128;

  static SharedDescriptors& instance();

  using Open = std::function<std::shared_ptr<const FileDescriptor>()>;
  // The owner's descriptor, opened by `open` if it has none. It stays open while it is held.
  std::shared_ptr<const FileDescriptor> acquire(const void* owner, const Open& open);
  void forget(const void* owner) noexcept;
  // Drops the least recently used one; false if there is none.
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
