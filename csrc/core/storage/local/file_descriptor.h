// File descriptors: a descriptor that closes itself, and a small pool for many files.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace tfrfast {

// The max number of descriptors of this process.
std::size_t max_descriptors() noexcept;

// Knows the file that it opened. A program may close any descriptor, as daemons do with all of
// them, and the system gives the number to the next file that the program opens. The object neither
// uses nor closes that file.
class FileDescriptor {
 public:
  // For reads that name their offsets. Nothing else may move the descriptor's position. Throws
  // Error io.
  explicit FileDescriptor(const std::string& path);
  // Takes over the descriptor, or -1. Leaves errno as it is.
  explicit FileDescriptor(int opened = -1) noexcept;
  ~FileDescriptor() { close(); }
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;

  // The descriptor, or -1 if there is none or the program has closed it.
  int get() const noexcept { return is_open() ? number_ : -1; }
  bool is_open() const noexcept;
  // The descriptor without a check. After a read, is_open() says whether the file was read.
  int number() const noexcept { return number_; }
  // Returns 0 or an errno. Does nothing if there is no descriptor.
  int close() noexcept;

 private:
  int number_;
  // The position of a descriptor for reading, which no other has: the cheapest proof, and readers
  // of many files need it often. 0 for others, which are known by the members below.
  off_t mark_ = 0;
  int flags_ = 0;
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
};

// Whether to repeat a call that opens a file and has failed: after a signal or, if there are no
// more descriptors, after closing one of the pool. Keeps errno.
bool may_open_again() noexcept;

// Writes all bytes at an offset. Returns 0 or an errno.
int write_at(int descriptor, std::uint64_t offset, const void* bytes, std::size_t count) noexcept;

// The most recently used descriptors of this process: at most kMax, and at most a quarter of the
// process's max. A descriptor in use stays open beyond the limits. If the system has no more
// descriptors, the least recently used are closed. Thread-safe. Owners are identified by address,
// and must call forget() before they are destroyed. A forked child begins with an empty pool,
// because it may close the descriptors of its parent.
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
  friend void forget_descriptors_in_child() noexcept;
  struct OwnedFile {
    const void* owner;
    std::shared_ptr<const FileDescriptor> file;
  };
  std::mutex mutex_;
  std::list<OwnedFile> recent_;  // most recently used first
  std::unordered_map<const void*, std::list<OwnedFile>::iterator> by_owner_;
};

}  // namespace tfrfast
