// The bytes of a TFRecord frame: u64 payload length | u32 masked CRC of those 8 bytes | payload |
// u32 masked CRC of the payload, all little-endian. Pure functions over memory: no I/O, no
// throwing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/crc32c/crc32c.h"

namespace tfrfast {

inline constexpr std::uint64_t kHeaderBytes = 12;
inline constexpr std::uint64_t kFooterBytes = 4;
inline constexpr std::uint64_t kFrameOverhead = kHeaderBytes + kFooterBytes;

struct FrameHeader {
  std::uint64_t payload_bytes = 0;
  MaskedCrc length_crc;
};

// Headers have kHeaderBytes, footers kFooterBytes.
FrameHeader decode_header(const std::uint8_t* bytes) noexcept;
void encode_header(std::uint64_t payload_bytes, std::uint8_t* out) noexcept;
MaskedCrc decode_footer(const std::uint8_t* bytes) noexcept;
void encode_footer(MaskedCrc payload_crc, std::uint8_t* out) noexcept;

// Whether the length in the header matches its CRC. The frame may still reach past the shard's end.
bool header_is_intact(const FrameHeader& header) noexcept;

// The reason why a walk along the chain of frames stopped: the shard's end, damage, or a limit of
// the walk itself.
enum class WalkStop : std::uint8_t {
  clean_end,      // exactly at the end of the shard
  torn_header,    // fewer bytes left than a header
  torn_payload,   // an intact header promises more bytes than are left
  bad_header,     // the length does not match its CRC: nothing after it can be trusted
  leaves_window,  // the next header is outside the window
  out_of_space,   // `capacity` frames were found
};

struct WalkStep {
  std::size_t frames = 0;  // offsets written
  std::uint64_t next = 0;  // where the walk stopped: the offset of the first frame not written
  WalkStop stop = WalkStop::clean_end;
};

// A piece of a shard in memory: bytes [begin, end) of a shard of `shard_bytes` bytes.
struct ShardWindow {
  const std::uint8_t* bytes = nullptr;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t shard_bytes = 0;
};

// Walks from the frame at `start` and writes each frame's offset, without looking at payloads.
// Reads every byte once and needs no destructors: safe inside run_guarded().
WalkStep walk_frames(const ShardWindow& window, std::uint64_t start, std::uint64_t* offsets,
                     std::size_t capacity) noexcept;

}  // namespace tfrfast
