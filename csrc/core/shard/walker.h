// A shard from its first byte to its last, in windows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "core/shard/framing.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// What a walk does where it cannot read on.
enum class AtDamage : std::uint8_t {
  get_over,  // looks for what follows, up to the shard's end
  stop,      // ends there
};

// Announces what follows in a file that is read in order, if each request is a round trip. Whoever
// drops it withdraws what was not read. For one thread.
class LookAhead {
 public:
  explicit LookAhead(std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max())
      : max_bytes_(max_bytes) {}

  // Announces up to `max_bytes` from `offset` on. Call it before each read.
  void come_to(const StoredFile& file, std::uint64_t offset);
  // The same once half of that is left, for those who read in pieces smaller than requests.
  void come_far(const StoredFile& file, std::uint64_t offset);
  // [0, end) was announced already.
  void add(std::uint64_t end, std::unique_ptr<Announcement> announcement);

 private:
  std::uint64_t max_bytes_of(const StoredFile& file) const noexcept;

  std::uint64_t max_bytes_;
  AnnouncedAhead ahead_;
};

// A cursor along a shard. Hands out windows of it in memory, mapped or read.
class ShardWalker {
 public:
  explicit ShardWalker(std::shared_ptr<const StoredFile> file) : file_(std::move(file)) {}
  virtual ~ShardWalker() = default;
  const StoredFile& file() const noexcept { return *file_; }
  // A window that holds byte `offset` and at least `wanted` bytes from there, or all that is left.
  // Valid until the next call. Touch its bytes only inside run_guarded().
  virtual ShardWindow window(std::uint64_t offset, std::size_t wanted) = 0;
  // Whether the bytes after a window will be wanted, too. If the file is not mapped, more is then
  // read at once.
  enum class Wanted : bool { here_and_there, everything };
  void expect(Wanted wanted) noexcept { expected_ = wanted; }

  // Whether the shard has at least `bytes` bytes. The size of a compressed one is known only at its
  // end, so this walks on to find out. file().bytes() and windows have what is known so far.
  virtual bool reach(std::uint64_t bytes) { return bytes <= file().bytes(); }
  // The shard has no more bytes than this, however far reach() goes.
  virtual std::uint64_t max_bytes() const { return file().bytes(); }
  // How many bytes of the file itself were read to get to byte `offset` of the shard.
  virtual std::uint64_t file_bytes_before(std::uint64_t offset) const { return offset; }
  // Why a compressed stream ends where it does, once reach() has found the end.
  enum class Ending : std::uint8_t { clean, truncated, corrupt };
  virtual Ending ending() const { return Ending::clean; }
  // After compressed data that cannot be inflated, looks for data that can. True if there are any:
  // their bytes then follow those so far. The record that the damage cut off stays cut off.
  virtual bool resume() { return false; }

  // `pulse` is called every few MiB of the file or the shard while a call takes long. It may throw
  // to end the walk.
  void set_pulse(std::function<void()> pulse) { pulse_ = std::move(pulse); }

 protected:
  Wanted expected() const noexcept { return expected_; }
  const std::function<void()>& pulse() const noexcept { return pulse_; }

 private:
  std::function<void()> pulse_ = [] {};
  Wanted expected_ = Wanted::here_and_there;
  const std::shared_ptr<const StoredFile> file_;
};

std::unique_ptr<ShardWalker> walk(std::shared_ptr<const StoredFile> file);

}  // namespace tfrfast
