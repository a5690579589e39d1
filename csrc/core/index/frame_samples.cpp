#include "core/index/frame_samples.h"

#include <algorithm>
#include <span>

#include "core/crc32c/crc32c.h"

namespace tfrfast {

std::uint64_t FrameSamples::stride_of(std::uint64_t record_count) noexcept {
  std::uint64_t stride = 1;
  while (record_count > kMax * stride) stride *= 2;
  return stride;
}

void FrameSamples::add(const std::uint8_t* header, const std::uint8_t* footer) noexcept {
  if (count_ == kMax) {
    for (std::size_t i = 0; i < kMax / 2; ++i) samples_[i] = samples_[2 * i];
    count_ = kMax / 2;
    stride_ *= 2;  // the new record is a multiple of the new stride, too
  }
  std::uint8_t* const sample = samples_[count_++].data();
  std::copy_n(header, kHeaderBytes, sample);
  std::copy_n(footer, kFooterBytes, sample + kHeaderBytes);
}

std::uint32_t FrameSamples::crc() const noexcept {
  return crc32c(samples_[0].data(), count_ * kFrameOverhead);
}

std::optional<std::uint32_t> crc_of_samples(
    const StoredFile& file, std::uint64_t record_count,
    const std::function<std::uint64_t(std::uint64_t)>& offset_of) {
  std::array<std::array<std::uint8_t, kHeaderBytes>, FrameSamples::kMax> headers;
  std::array<std::array<std::uint8_t, kFooterBytes>, FrameSamples::kMax> footers;
  std::array<ReadRange, FrameSamples::kMax> ranges;
  const std::uint64_t stride = FrameSamples::stride_of(record_count);
  std::size_t count = 0;
  for (std::uint64_t number = 0; number < record_count; number += stride, ++count) {
    ranges[count] = {offset_of(number), headers[count].data(), kHeaderBytes};
  }
  if (count == 0) return FrameSamples().crc();
  file.read(std::span(ranges).first(count));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t payload = ranges[i].offset + kHeaderBytes;
    const std::uint64_t payload_bytes = decode_header(headers[i].data()).payload_bytes;
    const std::uint64_t left = file.bytes() - payload;
    if (left < kFooterBytes || payload_bytes > left - kFooterBytes) return {};
    ranges[i] = {payload + payload_bytes, footers[i].data(), kFooterBytes};
  }
  file.read(std::span(ranges).first(count));
  FrameSamples samples;
  for (std::size_t i = 0; i < count; ++i) samples.add(headers[i].data(), footers[i].data());
  return samples.crc();
}

}  // namespace tfrfast
