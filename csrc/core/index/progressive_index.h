// Gives a shard's frames in file order: from the index or, without an index, found step by step.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/index/frame_walk.h"
#include "core/index/opening.h"

namespace tfrfast {

// No caller waits until a whole shard is indexed, or an index is proven: a request for frames up to
// byte N walks the headers up to N. At the end of the walk, the user's cache keeps the index, or
// the proof of an existing index, for the next opening. A compressed shard is inflated once if its
// records are read soon after the walk has passed them. Safe from many threads.
class ProgressiveIndex {
 public:
  // Throws Error io. A shard with an unexpected compression is one piece of damage.
  ProgressiveIndex(const std::string& shard_path, IoMode io, const IndexOptions& options);

  // The file that the offsets refer to.
  const std::shared_ptr<const StoredFile>& file() const noexcept { return file_; }

  // The frames and the damage that begin in bytes [begin, end).
  struct FoundFrames {
    std::uint64_t first_number = 0;  // number of the first frame in the shard
    std::vector<Frame> frames;
    std::vector<Damage> damage;
  };
  FoundFrames frames_in(std::uint64_t begin, std::uint64_t end);
  // Like frames_in(), for bytes of the file as stored. For a compressed shard, whose uncompressed
  // size is unknown at first, returns the frames of the spans that begin in these bytes.
  // If another thread is walking, calls `while_waiting` once, then waits.
  FoundFrames frames_in_file(std::uint64_t begin, std::uint64_t end,
                             const std::function<void()>& while_waiting = nullptr);

  // Walks a compressed shard on by about a span, before its records are asked for. Does nothing if
  // another thread is walking, or more than `max_bytes` of the stream have been walked. Never
  // fails: the next call of frames_in_file() throws the error.
  void walk_ahead(std::uint64_t max_bytes) noexcept;
  // Whether about `stream_bytes` of a compressed shard, or fewer, have not been walked.
  bool is_near_end(std::uint64_t stream_bytes) const noexcept;

  // The whole index, or null before the end of the walk.
  std::shared_ptr<const ShardIndex> index() const;

 private:
  void walk_to(std::uint64_t end);
  void inflate_more();
  void finish();
  FoundFrames frames_of_walk(std::uint64_t begin, std::uint64_t end) const;

  const std::shared_ptr<const StoredFile> on_disk_;
  Compression compression_ = Compression::none;
  const IndexOptions options_;
  bool settled_ = false;
  mutable std::mutex mutex_;  // guards the members below
  std::shared_ptr<const ShardIndex> index_;
  std::unique_ptr<FrameWalk> walk_;  // null once the index is known
  std::exception_ptr failed_ahead_;
  std::shared_ptr<const StoredFile> file_;  // set once
  std::atomic<std::uint64_t> walked_file_bytes_{0};
};

// Like the members above, from a whole index.
ProgressiveIndex::FoundFrames frames_of(const ShardIndex& index, std::uint64_t begin,
                                        std::uint64_t end);
ProgressiveIndex::FoundFrames frames_in_file_of(const ShardIndex& index, std::uint64_t begin,
                                                std::uint64_t end);

}  // namespace tfrfast
