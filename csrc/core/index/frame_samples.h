// The frames' own bytes of a few records that are spread over a shard: header and footer, so
// lengths and checksums. Where a filesystem does not tell whether a file was replaced, their
// checksum does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "core/shard/framing.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// Records 0, s, 2s, ... are sampled, where s is the smallest power of two with which there are at
// most kMax of them. So a writer can choose them before it knows how many records will come.
class FrameSamples {
 public:
  static constexpr std::size_t kMax = 32;
  static std::uint64_t stride_of(std::uint64_t record_count) noexcept;

  // Whether record `number`, which comes after those that were added, is sampled so far.
  bool wants(std::uint64_t number) const noexcept { return (number & (stride_ - 1)) == 0; }
  // A record that is wanted.
  void add(const std::uint8_t* header, const std::uint8_t* footer) noexcept;
  // The CRC-32C of all samples, one after another.
  std::uint32_t crc() const noexcept;

 private:
  std::array<std::array<std::uint8_t, kFrameOverhead>, kMax> samples_;  // `count_` are set
  std::size_t count_ = 0;
  std::uint64_t stride_ = 1;
};

// The same checksum from the file, whose records begin at offset_of(number). Empty if what lies
// there cannot be frames. Throws Error io, truncated and stale_index.
std::optional<std::uint32_t> crc_of_samples(
    const StoredFile& file, std::uint64_t record_count,
    const std::function<std::uint64_t(std::uint64_t)>& offset_of);

}  // namespace tfrfast
