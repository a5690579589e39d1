// After a bad header: where the next frame begins.
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
  // Told, every MiB or so that is looked at, how far the search has come. May throw to end it.
  using Step = std::function<void(std::uint64_t at)>;

  // Without `look_bytes`, find() goes on to the shard's end. With it, only frames that begin within
  // so many bytes of where it began are looked for, of no more bytes each, and little is read.
  FrameFinder(const std::shared_ptr<const StoredFile>& file, Step step,
              std::optional<std::uint64_t> look_bytes = {});

  enum class Outcome : std::uint8_t {
    found,
    none,        // there is none up to the shard's end
    gave_up,     // after too many false headers: nobody knows what follows
    not_looked,  // none within `look_bytes`
  };
  struct Found {
    std::uint64_t at = 0;  // the shard's size where there is none; how far it looked
    Outcome outcome = Outcome::none;
  };
  // The first frame at or after `from`. `walker` walks on, as far as it has to; payloads are read
  // apart from it. Throws Error for I/O failures, and what the step throws.
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
  std::uint64_t shard_bytes_ = 0;  // as far as they are known
  std::uint64_t data_bytes_ = 0;   // of those, as far as they are in no hole
  std::uint64_t fruitless_bytes_left_;
};

}  // namespace tfrfast
