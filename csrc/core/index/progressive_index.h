// A shard's frames in file order: from its index, or found step by step if there is none.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/index/opening.h"
#include "core/index/scan.h"

namespace tfrfast {

// No caller waits for a whole shard to be indexed, or for an index to be proven: asking for frames
// up to byte N walks the headers up to N. When the walk reaches the end, the user's cache keeps the
// index, or the proof if an existing index turns out to fit, for the next opening. A compressed
// shard is inflated once if its records are read soon after the walk has passed them. Safe from
// many threads.
class ProgressiveIndex {
 public:
  // Throws Error io. A shard that is not compressed as it should be is one piece of damage.
  ProgressiveIndex(const std::string& shard_path, IoMode io, const IndexOptions& options);

  // What offsets count in.
  const std::shared_ptr<const StoredFile>& file() const noexcept { return file_; }

  // The frames and the damage that begin in bytes [begin, end).
  struct Stretch {
    std::uint64_t first_number = 0;  // of the first frame, within the shard
    std::vector<Frame> frames;
    std::vector<Damage> damage;
  };
  Stretch stretch(std::uint64_t begin, std::uint64_t end);
  // The same for bytes of the file as stored. For a compressed shard, whose uncompressed size is
  // not known at first, these are the frames of the spans that begin there.
  Stretch stretch_in_file(std::uint64_t begin, std::uint64_t end);

  // The whole index, or null if it is not known yet.
  std::shared_ptr<const ShardIndex> index() const;

 private:
  void scan_to(std::uint64_t end);
  void finish();
  Stretch stretch_of_scan(std::uint64_t begin, std::uint64_t end) const;

  const std::shared_ptr<const StoredFile> on_disk_;
  Compression compression_ = Compression::none;
  const IndexOptions options_;
  bool settled_ = false;
  mutable std::mutex mutex_;  // guards the rest
  std::shared_ptr<const ShardIndex> index_;
  std::unique_ptr<ShardScanner> scanner_;   // until there is an index
  std::shared_ptr<const StoredFile> file_;  // set once
};

// The same, from a whole index.
ProgressiveIndex::Stretch stretch_of(const ShardIndex& index, std::uint64_t begin,
                                     std::uint64_t end);
ProgressiveIndex::Stretch stretch_in_file_of(const ShardIndex& index, std::uint64_t begin,
                                             std::uint64_t end);

}  // namespace tfrfast
