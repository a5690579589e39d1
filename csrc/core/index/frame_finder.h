// Finds the next frame after a bad header.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/shard/walker.h"

namespace tfrfast {

// Serves one walk along one shard. A frame counts if the CRC of its length is right, and the CRC of
// its payload or the next header is right, too. Payloads that contain whole frames may be mistaken
// for frames. A shard may hold nothing but false headers whose payloads reach to its end. So the
// bytes read without result are limited, over the whole walk, to about the file's size. One thread
// at a time.
class FrameFinder {
 public:
  // Called about every MiB with the place that the search has reached. May throw to end the search.
  using Step = std::function<void(std::uint64_t at)>;

  // Without `look_bytes`, find() searches to the shard's end. With `look_bytes`, find() searches
  // only that many bytes, for frames of at most that size, and reads little.
  FrameFinder(const std::shared_ptr<const StoredFile>& file, Step step,
              std::optional<std::uint64_t> look_bytes = {});

  enum class SearchEnd : std::uint8_t {
    found,
    none,        // no frame follows
    gave_up,     // too many false headers; the rest is unknown
    not_looked,  // no frame within `look_bytes`
  };
  struct FoundFrame {
    std::uint64_t at = 0;  // the frame's place; otherwise the place where the search ended
    SearchEnd outcome = SearchEnd::none;
  };
  // The first frame at or after `from`. `walker` walks on as far as necessary; a second walker
  // reads payloads. Throws Error for I/O failures, and the exceptions of `step`.
  FoundFrame find(ShardWalker& walker, std::uint64_t from);

 private:
  bool is_frame(ShardWalker& walker, std::uint64_t at, std::uint64_t payload_bytes);
  bool payload_is_intact(std::uint64_t frame, std::uint64_t payload_bytes);
  void walk_to_end(ShardWalker& walker);
  void take_notice_of_growth();

  const std::shared_ptr<const StoredFile> file_;
  const Step step_;
  const std::optional<std::uint64_t> look_bytes_;
  std::unique_ptr<ShardWalker> probe_;
  std::uint64_t shard_bytes_ = 0;  // known so far
  std::uint64_t data_bytes_ = 0;   // file size without holes
  std::uint64_t fruitless_bytes_left_;
};

}  // namespace tfrfast
