// Buffers frames in memory before they are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/base/pool.h"
#include "core/shard/framing.h"

namespace tfrfast {

// One thread at a time. Holds no memory until allocate().
class FrameBuffer {
 public:
  FrameBuffer() noexcept { encode_header(0, header_); }

  void allocate(std::size_t bytes) {
    memory_ = PooledBuffer(bytes);
    capacity_ = bytes;
    used_ = 0;
  }
  void release() noexcept {
    memory_ = PooledBuffer();
    capacity_ = used_ = 0;
  }

  // Takes `bytes` bytes of frames, which `read(memory)` writes into the buffer.
  template <class Read>
  void fill(std::size_t bytes, const Read& read) {
    allocate(bytes);
    read(memory_.data());
    used_ = bytes;
  }

  bool allocated() const noexcept { return capacity_ != 0; }
  bool has_space(std::size_t payload_bytes) const noexcept {
    return capacity_ - used_ >= kFrameOverhead &&
           capacity_ - used_ - kFrameOverhead >= payload_bytes;
  }
  std::span<std::uint8_t> bytes() const noexcept { return {memory_.data(), used_}; }
  void clear() noexcept { used_ = 0; }

  // Append a frame or its header, for which the buffer must have space. A payload may come in two
  // parts.
  void put_frame(std::span<const std::uint8_t> first,
                 std::span<const std::uint8_t> second = {}) noexcept {
    const std::size_t payload_bytes = first.size() + second.size();
    put_header(payload_bytes);
    std::uint8_t* out = memory_.data() + used_;
    std::uint32_t crc = 0;
    for (const std::span<const std::uint8_t> part : {first, second}) {
      if (part.empty()) continue;
      crc = copy_crc32c(out, part.data(), part.size(), crc);
      out += part.size();
    }
    encode_footer(mask_crc(crc), out);
    used_ += payload_bytes + kFooterBytes;
  }
  void put_header(std::uint64_t payload_bytes) noexcept {
    if (payload_bytes != header_payload_bytes_) {  // many records have the same size
      encode_header(payload_bytes, header_);
      header_payload_bytes_ = payload_bytes;
    }
    std::memcpy(memory_.data() + used_, header_, kHeaderBytes);
    used_ += kHeaderBytes;
  }

 private:
  PooledBuffer memory_;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
  std::uint64_t header_payload_bytes_ = 0;  // the length in `header_`
  std::uint8_t header_[kHeaderBytes];
};

}  // namespace tfrfast
