// Walks once along a shard's headers and finds the offset of every good record, and the damage.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/codec/inflated_file.h"
#include "core/codec/seek_points.h"
#include "core/index/frame_finder.h"
#include "core/index/packed_offsets.h"
#include "core/index/shard_index.h"
#include "core/shard/walker.h"

namespace tfrfast {

// Called on the walking thread, every few MiB, with the number of bytes walked since the last
// call, which may be 0. May throw to stop the walk.
using WalkProgress = std::function<void(std::uint64_t newly_walked_bytes)>;

struct WalkedFrames {
  PackedBytes offsets;  // one more than good records
  std::vector<Damage> damage;
  std::shared_ptr<const SeekPoints> seek_points;  // of a compressed shard
  bool is_whole = true;  // false if the walk stopped at the last listed damage
};

struct WalkOptions {
  Compression compression = Compression::none;
  WalkedSpans kept = WalkedSpans::none;  // of a compressed shard
  AtDamage at_damage = AtDamage::get_over;
  StorageOptions storage = {};  // may name a cache for the Mirror of file(), if it is compressed
  std::uint64_t begin = 0;      // where a plain shard's walk begins
};

// A walk that can pause. `offsets` and `damage` hold the findings so far. Reads payloads only to
// find the next frame after a bad header. Throws Error for I/O failures, Error memory for a
// compressed shard with too many records, and the exceptions of `progress`. Damage is a finding,
// not a failure. One thread at a time.
class FrameWalk {
 public:
  // `file` is the file as stored.
  explicit FrameWalk(const std::shared_ptr<const StoredFile>& file, const WalkOptions& options = {},
                     WalkProgress progress = nullptr);
  FrameWalk(const FrameWalk&) = delete;
  FrameWalk& operator=(const FrameWalk&) = delete;

  // Walks on by a few thousand frames at most. Stops at the first frame at or after byte `limit`.
  void advance(std::uint64_t limit);

  // The file that the offsets refer to. For a compressed file, the bytes inflated so far.
  const std::shared_ptr<const StoredFile>& file() const noexcept { return file_; }

  const std::shared_ptr<const SeekPoints>& seek_points() const noexcept { return seek_points_; }

  bool finished() const noexcept { return finished_; }
  bool is_of_whole_shard() const noexcept { return begin_ == 0; }
  // All frames that begin before this byte have been found.
  std::uint64_t position() const noexcept { return at_; }
  std::uint64_t good_end() const noexcept { return good_end_; }  // end of the last frame found
  // Without the last entry, which take() adds.
  const OffsetPacker& offsets() const noexcept { return offsets_; }
  const std::vector<Damage>& damage() const noexcept { return found_.damage; }
  WalkedFrames take();
  WalkedFrames take_all();  // walks to the end first

  std::uint64_t file_bytes_done() const;  // of the file as stored
  std::uint64_t file_bytes() const noexcept { return file_->facts().bytes; }

 private:
  void lose(DamageKind kind, std::uint64_t end, std::uint64_t records);
  void get_over_bad_header();
  void get_over_bad_stream(std::uint64_t cut);
  FrameFinder::FoundFrame find_frame(std::uint64_t from);
  void take_large_frame();
  void end(std::optional<DamageKind> torn);
  void report();
  void add(std::span<const std::uint64_t> offsets);

  std::shared_ptr<const StoredFile> file_;
  std::unique_ptr<ShardWalker> walker_;
  std::shared_ptr<const SeekPoints> seek_points_;
  const AtDamage at_damage_;
  const std::uint64_t begin_;
  const WalkProgress progress_;
  std::optional<FrameFinder> finder_;  // made at the first bad header
  std::vector<std::uint64_t> chunk_;
  OffsetPacker offsets_;
  WalkedFrames found_;  // without offsets
  std::uint64_t max_records_;
  std::uint64_t at_ = 0;
  std::uint64_t good_end_ = 0;
  std::uint64_t searched_ = 0;  // end of the bytes searched for a frame after damage
  std::uint64_t reported_bytes_ = 0;
  bool finished_ = false;
};

// Walks a whole shard at once.
WalkedFrames walk_shard(const std::shared_ptr<const StoredFile>& file,
                        const WalkProgress& progress = nullptr,
                        Compression compression = Compression::none,
                        AtDamage at_damage = AtDamage::get_over);

}  // namespace tfrfast
