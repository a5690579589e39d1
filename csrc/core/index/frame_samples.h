// Samples the headers and footers, and so the lengths and checksums, of a few records spread over a
// shard. If a filesystem does not reveal whether a file was replaced, the samples' checksum does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "core/shard/framing.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// Samples records 0, s, 2s, ..., where s is the smallest power of two that gives at most kMax
// samples. So a writer can choose samples before the number of records is known.
class FrameSamples {
 public:
  static constexpr std::size_t kMax = 32;
  static std::uint64_t stride_of(std::uint64_t record_count) noexcept;

  // Whether to sample record `number`, which must come after all added records.
  bool wants(std::uint64_t number) const noexcept { return (number & (stride_ - 1)) == 0; }
  // Adds a record for which wants() is true.
  void add(const std::uint8_t* header, const std::uint8_t* footer) noexcept;
  // The CRC-32C of all samples, end to end.
  std::uint32_t crc() const noexcept;

 private:
  // The first `count_` are set.
  std::array<std::array<std::uint8_t, kFrameOverhead>, kMax> samples_;
  std::size_t count_ = 0;
  std::uint64_t stride_ = 1;
};

// Computes crc() from the file, whose records begin at offset_of(number). Empty if the bytes there
// cannot be frames. Throws Error io, truncated and stale_index.
std::optional<std::uint32_t> crc_of_samples(
    const StoredFile& file, std::uint64_t record_count,
    const std::function<std::uint64_t(std::uint64_t)>& offset_of);

}  // namespace tfrfast
