// A shard from its first byte to its last, in windows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "core/shard/framing.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// What a walk does where the shard cannot be read on.
enum class AtDamage : std::uint8_t {
  get_over,  // look for what follows, all the way to the end
  stop,      // it is all that is asked for
};

// A cursor for whoever walks a shard: hands out windows of it, in memory either way.
class ShardWalker {
 public:
  explicit ShardWalker(std::shared_ptr<const StoredFile> file) : file_(std::move(file)) {}
  virtual ~ShardWalker() = default;
  const StoredFile& file() const noexcept { return *file_; }
  // A window that holds byte `offset` and at least `wanted` bytes from there, or all that is left.
  // Valid until the next call. Touch its bytes only inside run_guarded().
  virtual ShardWindow window(std::uint64_t offset, std::size_t wanted) = 0;
  // Whether what follows a window is wanted, too: then more is read at once, where it has to be.
  enum class Wanted : bool { here_and_there, everything };
  void expect(Wanted wanted) noexcept { expected_ = wanted; }

  // Whether the shard has `bytes` bytes. A compressed one's size is known at its end only, so this
  // walks on to find out; file().bytes() and windows tell what is known so far.
  virtual bool reach(std::uint64_t bytes) { return bytes <= file().bytes(); }
  // The shard has no more bytes than this, however far reach() goes.
  virtual std::uint64_t max_bytes() const { return file().bytes(); }
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
  Wanted expected() const noexcept { return expected_; }
  const std::function<void()>& pulse() const noexcept { return pulse_; }

 private:
  std::function<void()> pulse_ = [] {};
  Wanted expected_ = Wanted::here_and_there;
  const std::shared_ptr<const StoredFile> file_;
};

// For whoever reads a whole file in order, before it reads at `offset`: announces what follows, if
// each request is a round trip. `announced_end` is 0 at first.
void announce_ahead(const StoredFile& file, std::uint64_t offset, std::uint64_t& announced_end);

std::unique_ptr<ShardWalker> walk(std::shared_ptr<const StoredFile> file);

}  // namespace tfrfast
