// Behind a bad header: where the next frame begins.
#pragma once

#include <cstdint>
#include <memory>

#include "core/shard/file.h"

namespace tfrfast {

// For one walk along one shard. A frame is believed when its length's CRC holds and so does its
// payload's CRC or the header after it. Payloads that contain whole frames can be mistaken for
// them. A shard may be made of nothing but false headers whose payloads reach to its end; so what
// is read in vain over the whole walk is bounded by about the shard's size.
class FrameFinder {
 public:
  explicit FrameFinder(const std::shared_ptr<const ShardFile>& file);

  struct Found {
    std::uint64_t at = 0;  // the shard's size if there is none
    bool gave_up = false;  // after too many false headers: nobody knows what follows
  };
  // The first frame at or after `from` of the bytes that the shard has now. `walker` walks on,
  // payloads are read apart from it. Throws Error for I/O failures only.
  Found find(ShardWalker& walker, std::uint64_t from);

 private:
  bool vouched_for(std::uint64_t frame, std::uint64_t payload_bytes);

  void take_notice_of_growth();

  const std::shared_ptr<const ShardFile> file_;
  std::unique_ptr<ShardWalker> probe_;
  std::uint64_t shard_bytes_ = 0;
  std::uint64_t vain_bytes_left_;
};

}  // namespace tfrfast
