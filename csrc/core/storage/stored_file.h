// A shard's bytes: mapped or read with pread. Truncation and I/O errors are Errors, never crashes.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/storage/file_identity.h"

namespace tfrfast {

class FileDescriptor;

enum class IoMode : std::uint8_t {
  automatic,  // mapped on local filesystems, pread on network and FUSE ones
  mapped,
  pread,
};

// An open shard of fixed size: what the file grows by later is not seen. Immutable and safe from
// many threads. A mapped file is read without a descriptor; a file read by pread shares a small
// pool of descriptors with all others, so ten thousand of them may be open at once.
class StoredFile {
 public:
  // Maps when asked, or when `automatic` and the filesystem is local; a mapping that the system
  // refuses (too many of them, say) falls back to pread. Installs the fault guard.
  static std::shared_ptr<const StoredFile> open(const std::string& path,
                                                IoMode mode = IoMode::automatic);
  virtual ~StoredFile();
  StoredFile(const StoredFile&) = delete;
  StoredFile& operator=(const StoredFile&) = delete;

  const std::string& path() const noexcept { return path_; }  // as it was given
  // Of what read() reads: the file or, of a compressed shard, its uncompressed stream.
  virtual std::uint64_t bytes() const noexcept { return identity_.bytes; }
  const FileIdentity& identity() const noexcept { return identity_; }  // of the file itself
  // Whether a file that nobody changes keeps device, inode and ctime, as it does on the machine's
  // own filesystems. Others give it new ones when they are mounted again, or when they like.
  bool identity_lasts() const noexcept { return identity_lasts_; }
  // Whether the file is still the one that was opened, as far as its identity tells.
  bool is_still(const FileIdentity& now) const noexcept;
  // What is behind the path now, whatever the process's folder is by now. Throws Error io.
  FileIdentity identify_now() const { return identify_file(absolute_path_); }

  // The whole shard's bytes, or null where it is read by pread. Touch it only inside run_guarded().
  const std::uint8_t* mapping() const noexcept { return mapping_; }

  // Whether bytes are made from the file's with the help of an index: then nothing but checksums
  // can tell that they are right.
  virtual bool is_inflated() const noexcept { return false; }
  // What errors call byte `offset`: "byte 12" or, of a compressed shard, both places.
  virtual std::string describe_byte(std::uint64_t offset) const;

  // Fills `pieces`, in order, from consecutive bytes at `offset`. Throws Error truncated if the
  // file is shorter than it was when opened, io otherwise. Uses (alters) the array it is given.
  virtual void read(std::uint64_t offset, iovec* pieces, int count) const = 0;
  void read(std::uint64_t offset, std::uint8_t* out, std::size_t byte_count) const;

  // Tells the kernel that a range, or the first GiB of it, will be read soon. Never fails.
  virtual void will_need(std::uint64_t offset, std::uint64_t byte_count) const noexcept = 0;

  // The first byte at or after `offset` that is in no hole, or bytes(). A hole is zeros that take
  // no room; where the filesystem cannot tell, there is none. Never fails.
  virtual std::uint64_t next_data(std::uint64_t offset) const noexcept;
  // About how many bytes are in no hole; bytes() where the filesystem cannot tell.
  virtual std::uint64_t data_bytes() const noexcept;

  // Whether the byte can be had without waiting for a disk or a network. Where the system cannot
  // tell: true if mapped, false if not.
  virtual bool is_cached(std::uint64_t offset) const noexcept;

 protected:
  StoredFile(std::string path, const FileIdentity& identity, bool identity_lasts,
             const std::uint8_t* mapping);

  const std::string& absolute_path() const noexcept { return absolute_path_; }

  // A descriptor of the file that was opened, to use and let go of: there are few of them. One that
  // had to be closed meanwhile is opened again by name: Error stale_index if the file there is not
  // the one that was opened, or was changed, truncated if it is shorter.
  std::shared_ptr<const FileDescriptor> descriptor() const;

  // Error truncated: the file ended at or before `offset`, inside what it held when it was opened.
  [[noreturn]] void throw_shrunk(std::uint64_t offset) const;

 private:
  std::string path_;
  std::string absolute_path_;
  FileIdentity identity_;
  bool identity_lasts_;
  const std::uint8_t* mapping_;
};

// Explains a fault under `file`'s mapping: Error truncated if the file is shorter now, else io.
[[noreturn]] void throw_mapping_fault(const StoredFile& file, std::uint64_t offset);

}  // namespace tfrfast
