// Walks a shard from its first byte to its last, in windows.
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

// The action of a walk after damage.
enum class AtDamage : std::uint8_t {
  get_over,  // search for intact data, up to the shard's end
  stop,      // end the walk
};

// Announces the next bytes of a remote file that is read in order. Does nothing for other files.
// Destroying the object withdraws unread announcements. One thread at a time.
class LookAhead {
 public:
  explicit LookAhead(std::uint64_t max_bytes = std::numeric_limits<std::uint64_t>::max())
      : max_bytes_(max_bytes) {}

  // Announces up to `max_bytes` from `offset` on. Call before each read.
  void come_to(const StoredFile& file, std::uint64_t offset);
  // Like come_to(), but announces nothing before half of the announced bytes are read. For readers
  // whose pieces are smaller than a request.
  void come_far(const StoredFile& file, std::uint64_t offset);
  // Takes over an announcement of [0, end).
  void add(std::uint64_t end, std::unique_ptr<Announcement> announcement);

 private:
  std::uint64_t max_bytes_of(const StoredFile& file) const noexcept;

  std::uint64_t max_bytes_;
  AnnouncedAhead ahead_;
};

// A cursor along a shard. Provides windows of the shard in memory, mapped or read.
class ShardWalker {
 public:
  explicit ShardWalker(std::shared_ptr<const StoredFile> file) : file_(std::move(file)) {}
  virtual ~ShardWalker() = default;
  const StoredFile& file() const noexcept { return *file_; }
  // Returns a window with byte `offset` and at least `wanted` bytes from there, or all bytes that
  // are left. Valid until the next call. Touch the window's bytes only inside run_guarded().
  virtual ShardWindow window(std::uint64_t offset, std::size_t wanted) = 0;
  // Says whether the caller will read everything. If so, an unmapped file is read in larger pieces.
  enum class Access : bool { here_and_there, everything };
  void expect(Access wanted) noexcept { expected_ = wanted; }

  // Returns whether the shard has at least `bytes` bytes. A compressed shard's size is known only
  // at its end, so this may walk on. file().bytes() and windows give the size known so far.
  virtual bool reach(std::uint64_t bytes) { return bytes <= file().bytes(); }
  // An upper bound of the shard's size.
  virtual std::uint64_t max_bytes() const { return file().bytes(); }
  // The number of the file's bytes that hold the shard's first `offset` bytes.
  virtual std::uint64_t file_bytes_before(std::uint64_t offset) const { return offset; }
  // Why a compressed stream ended, after reach() has found the end.
  enum class Ending : std::uint8_t { clean, truncated, corrupt };
  virtual Ending ending() const { return Ending::clean; }
  // Call after corrupt compressed data. Looks for later data that can be inflated. Returns true if
  // such data exist. Their bytes follow the shard's bytes so far. A record that the damage cut off
  // stays incomplete.
  virtual bool resume() { return false; }

  // A long call calls `pulse` every few MiB of the file or the shard. `pulse` may throw to end the
  // walk.
  void set_pulse(std::function<void()> pulse) { pulse_ = std::move(pulse); }

 protected:
  Access expected() const noexcept { return expected_; }
  const std::function<void()>& pulse() const noexcept { return pulse_; }

 private:
  std::function<void()> pulse_ = [] {};
  Access expected_ = Access::here_and_there;
  const std::shared_ptr<const StoredFile> file_;
};

std::unique_ptr<ShardWalker> walk(std::shared_ptr<const StoredFile> file,
                                  LookAhead ahead = LookAhead());

}  // namespace tfrfast
