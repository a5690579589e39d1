// Where the next member begins after compressed data that cannot be decoded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/base/pool.h"
#include "core/codec/stream_inflater.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// For one walk along one file. A member is believed when it inflates to the length and the checksum
// that it ends with, because compressed data contain sequences that look like a member's first
// bytes by accident. A file may consist of nothing but false members that reach to its end. So the
// bytes inflated without result are bounded, over the whole walk, by a small multiple of the file's
// own. For one thread.
class MemberFinder {
 public:
  // `pulse` is called every few MiB, and may throw to end the search.
  MemberFinder(std::shared_ptr<const StoredFile> file, Compression compression,
               std::function<void()> pulse);

  // Where the first member at or after byte `from` of the file begins. Empty if there is none, or
  // after too many false ones. Throws Error io.
  std::optional<std::uint64_t> find(std::uint64_t from);

 private:
  bool inflates(std::uint64_t member);

  const std::shared_ptr<const StoredFile> file_;
  const Codec& codec_;
  const std::function<void()> pulse_;
  StreamInflater probe_;
  PooledBuffer out_;
  std::uint64_t fruitless_bytes_left_;
};

}  // namespace tfrfast
