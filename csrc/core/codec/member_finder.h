// Finds the next member after damaged compressed data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/base/pool.h"
#include "core/codec/stream_inflater.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// Serves one walk along one file. Compressed data contain a member's first bytes by accident, so a
// candidate counts only if it inflates to its own length and checksum. A file may hold nothing but
// false members that each reach to the end. So the bytes inflated without result are limited, over
// the whole walk, to a small multiple of the file's size. One thread at a time.
class MemberFinder {
 public:
  // `pulse` is called every few MiB, and may throw to end the search.
  MemberFinder(std::shared_ptr<const StoredFile> file, Compression compression,
               std::function<void()> pulse);

  // Returns the place of the first member at or after byte `from` of the file. Empty if there is no
  // member, or after too many false ones. Throws Error io.
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
