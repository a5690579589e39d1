// Finds the next frame after a bad header.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/shard/walker.h"

namespace tfrfast {

// For one walk along one shard. A frame is believed when its length's CRC holds and so does its
// payload's CRC or the header after it. Payloads that contain whole frames can be mistaken for
// them. A shard may consist of nothing but false headers whose payloads reach to its end. So the
// bytes read without result are bounded, over the whole walk, by about the bytes of the file.
class FrameFinder {
 public:
  // Called about every MiB with the place that the search has reached. May throw to end it.
  using Step = std::function<void(std::uint64_t at)>;

  // Without `look_bytes`, find() searches to the shard's end. With it, find() searches only that
  // many bytes, for frames that are no larger, and reads little.
  FrameFinder(const std::shared_ptr<const StoredFile>& file, Step step,
              std::optional<std::uint64_t> look_bytes = {});

  enum class Outcome : std::uint8_t {
    found,
    none,        // there is no frame up to the shard's end
    gave_up,     // after too many false headers: what follows is not known
    not_looked,  // no frame within `look_bytes`
  };
  struct Found {
    std::uint64_t at = 0;  // of the frame; else where the search ended
    Outcome outcome = Outcome::none;
  };
  // The first frame at or after `from`. `walker` walks on as far as necessary; payloads are read
  // with another one. Throws Error for I/O failures, and what the step throws.
  Found find(ShardWalker& walker, std::uint64_t from);

 private:
  bool is_frame(ShardWalker& walker, std::uint64_t at, std::uint64_t payload_bytes);
  bool payload_is_intact(std::uint64_t frame, std::uint64_t payload_bytes);
  void walk_to_end(ShardWalker& walker);
  void take_notice_of_growth();

  const std::shared_ptr<const StoredFile> file_;
  const Step step_;
  const std::optional<std::uint64_t> look_bytes_;
  std::unique_ptr<ShardWalker> probe_;
  std::uint64_t shard_bytes_ = 0;  // that are known so far
  std::uint64_t data_bytes_ = 0;   // of the file, without holes
  std::uint64_t fruitless_bytes_left_;
};

}  // namespace tfrfast
