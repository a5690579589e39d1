// Lets a walk along a shard read through its walker.
#pragma once

#include <cstdint>

#include "core/shard/walker.h"
#include "core/storage/fault_guard.h"

namespace tfrfast {

// Runs `leaf`, which touches the walker's bytes near `at`. A fault is a failure, never damage: the
// unreadable bytes may be intact, and an index must not say otherwise.
template <class Leaf>
void touch(const ShardWalker& walker, std::uint64_t at, const Leaf& leaf) {
  if (!run_guarded(leaf)) throw_mapping_fault(walker.file(), at);
}

// Decodes a header. The shard must have kHeaderBytes bytes from `at` on.
inline FrameHeader header_at(ShardWalker& walker, std::uint64_t at) {
  const ShardWindow window = walker.window(at, kHeaderBytes);
  FrameHeader header;
  touch(walker, at, [&] { header = decode_header(window.bytes + (at - window.begin)); });
  return header;
}

}  // namespace tfrfast
