// A shard's bytes: mapped or read with pread. Truncation and I/O errors are Errors, never crashes.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/shard/file_identity.h"
#include "core/shard/framing.h"

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
class ShardFile {
 public:
  // Maps when asked, or when `automatic` and the filesystem is local; a mapping that the system
  // refuses (too many of them, say) falls back to pread. Installs the fault guard.
  static std::shared_ptr<const ShardFile> open(const std::string& path,
                                               IoMode mode = IoMode::automatic);
  virtual ~ShardFile();
  ShardFile(const ShardFile&) = delete;
  ShardFile& operator=(const ShardFile&) = delete;

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
  ShardFile(std::string path, const FileIdentity& identity, bool identity_lasts,
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
[[noreturn]] void throw_mapping_fault(const ShardFile& file, std::uint64_t offset);

// What a walk does where the shard cannot be read on.
enum class AtDamage : std::uint8_t {
  get_over,  // look for what follows, all the way to the end
  stop,      // it is all that is asked for
};

// A cursor for whoever walks a shard: hands out windows of it, in memory either way.
class ShardWalker {
 public:
  explicit ShardWalker(std::shared_ptr<const ShardFile> file) : file_(std::move(file)) {}
  virtual ~ShardWalker() = default;
  const ShardFile& file() const noexcept { return *file_; }
  // A window that holds byte `offset` and at least `wanted` bytes from there, or all that is left.
  // Valid until the next call. Touch its bytes only inside run_guarded().
  virtual ShardWindow window(std::uint64_t offset, std::size_t wanted) = 0;
  // How much is read at once where a window has to be read: worth it if what follows is wanted too.
  void set_read_ahead(std::size_t bytes) noexcept { read_ahead_bytes_ = bytes; }

  // Whether the shard has `bytes` bytes. A compressed one's size is known at its end only, so this
  // walks on to find out; file().bytes() and windows tell what is known so far.
  virtual bool reach(std::uint64_t bytes) { return bytes <= file().bytes(); }
  // The shard has no more bytes than this, however far reach() goes.
  virtual std::uint64_t most_bytes() const { return file().bytes(); }
  // How much of the file itself was gone through to get to byte `offset` of the shard.
  virtual std::uint64_t file_bytes_before(std::uint64_t offset) const { return offset; }
  // Why a compressed stream ends where it does, once reach() has been there.
  enum class Ending : std::uint8_t { clean, truncated, corrupt };
  virtual Ending ending() const { return Ending::clean; }
  // Behind compressed data that cannot be read on, looks for some that can: true if there are any,
  // whose bytes then follow those there were so far. The record that was cut goes on nowhere.
  virtual bool resume() { return false; }

  // Called every few MiB of the file or the shard while a call takes long. May throw to end it, and
  // the walk with it.
  void set_pulse(std::function<void()> pulse) { pulse_ = std::move(pulse); }

 protected:
  std::size_t read_ahead_bytes() const noexcept { return read_ahead_bytes_; }
  const std::function<void()>& pulse() const noexcept { return pulse_; }

 private:
  std::function<void()> pulse_ = [] {};
  std::size_t read_ahead_bytes_ = 4 << 10;
  const std::shared_ptr<const ShardFile> file_;
};
std::unique_ptr<ShardWalker> walk(std::shared_ptr<const ShardFile> file);

}  // namespace tfrfast
