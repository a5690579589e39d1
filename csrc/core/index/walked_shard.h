// Finds a shard's frames in file order as they are wanted: by the index or, without an index, by a
// walk from header to header.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/index/frame_walk.h"
#include "core/index/opening.h"

namespace tfrfast {

// A place in a shard, before a frame or damage.
struct ShardPlace {
  std::uint64_t byte = 0;    // of the stream
  std::uint64_t number = 0;  // of the next good record
};

// No caller waits until a whole shard is indexed: the walk goes no further than the frames that are
// asked for. A walk of the whole shard leaves its index in the user's cache. A compressed shard is
// inflated once if its records are read soon after the walk has passed them. Safe from many
// threads.
class WalkedShard {
 public:
  // Throws Error io. A shard with an unexpected compression is one piece of damage.
  WalkedShard(const std::string& shard_path, IoMode io, const IndexOptions& options);

  // The file that the offsets refer to.
  const std::shared_ptr<const StoredFile>& file() const noexcept { return file_; }

  // Some frames, or damage, or the shard's end.
  struct PassedFrames {
    ShardPlace next;  // after the stretch
    std::optional<Damage> damage;
    bool is_end = false;
  };
  // Passes over at most `max_frames` frames, which begin less than `max_bytes` after `from`, but at
  // least one, or over the damage at `from`. Adds the frames to `frames` unless it is null. Throws
  // Error io and the errors of a walk.
  PassedFrames pass(const ShardPlace& from, std::uint64_t max_frames, std::uint64_t max_bytes,
                    std::vector<Frame>* frames = nullptr);

  // When the shard is inflated, at most so many bytes of inflated spans stay in this process.
  void keep_at_most(std::size_t span_bytes) const noexcept;

  // The whole index, or null before the end of a whole walk.
  std::shared_ptr<const ShardIndex> index() const;

 private:
  void walk(const ShardPlace& from, std::uint64_t max_frames, std::uint64_t max_bytes);
  void finish();

  const std::shared_ptr<const StoredFile> on_disk_;
  Compression compression_ = Compression::none;
  const IndexOptions options_;
  bool settled_ = false;
  std::shared_ptr<const StoredFile> file_;  // set once
  mutable std::mutex mutex_;                // guards the members below
  std::shared_ptr<const ShardIndex> index_;
  std::unique_ptr<FrameWalk> walk_;
  std::uint64_t first_number_ = 0;  // of the walk
};

}  // namespace tfrfast
