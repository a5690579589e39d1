#include "core/write/member_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/codec/deflater.h"
#include "core/crc32c/crc32c.h"

namespace tfrfast {
namespace {

// The writers of a thread share a compressor. A compressor takes a quarter of a MiB, and there may
// be thousands of shards.
Deflater& deflater_of_thread(Compression compression, int level) {
  struct Kept {
    Compression compression = Compression::none;
    int level = 0;
    std::unique_ptr<Deflater> deflater;
  };
  thread_local Kept kept;
  if (kept.deflater == nullptr || kept.compression != compression || kept.level != level) {
    kept.deflater = std::make_unique<Deflater>(codec_of(compression).window_bits, level);
    kept.compression = compression;
    kept.level = level;
  }
  return *kept.deflater;
}

}  // namespace

MemberWriter::MemberWriter(PublishedFile& file, Compression compression, int level)
    : file_(file), compression_(compression), level_(level) {
  deflater_of_thread(compression_, level_);  // throws now rather than after hours of encoding
}

void MemberWriter::append(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    if (buffer_.capacity() == 0) buffer_ = PooledBuffer(kMemberBytes);
    const std::size_t taken = std::min(bytes.size(), kMemberBytes - buffered_);
    std::memcpy(buffer_.data() + buffered_, bytes.data(), taken);
    buffered_ += taken;
    bytes = bytes.subspan(taken);
    if (buffered_ == kMemberBytes) write_member();
  }
}

void MemberWriter::flush() {
  if (buffered_ > 0) write_member();
  buffer_ = PooledBuffer();
}

void MemberWriter::write_member() {
  const std::span<const std::uint8_t> bytes{buffer_.data(), buffered_};
  if (!bytes.empty()) {
    Span span;
    span.begin = spans_.empty() ? 0 : spans_.back().end;
    span.end = span.begin + bytes.size();
    span.place.file_offset = file_bytes_ + codec_of(compression_).written_header_bytes;
    span.crc = crc32c(bytes.data(), bytes.size());
    samples_.push_back({spans_.size(), {}});
    spans_.push_back(span);
  }
  buffered_ = 0;
  write_out(deflater_of_thread(compression_, level_).deflate(bytes));
}

void MemberWriter::write_out(std::span<const std::uint8_t> bytes) {
  file_.append(bytes.data(), bytes.size());
  for (Sample& sample : samples_) {
    const std::uint64_t wanted_at = spans_[sample.span].place.file_offset + sample.bytes.size();
    const auto from = static_cast<std::size_t>(wanted_at - file_bytes_);
    if (from >= bytes.size()) continue;
    const std::size_t count = std::min(kSampleBytes - sample.bytes.size(), bytes.size() - from);
    sample.bytes.insert(sample.bytes.end(), bytes.begin() + from, bytes.begin() + from + count);
  }
  file_bytes_ += bytes.size();
  std::erase_if(samples_, [this](const Sample& sample) {
    spans_[sample.span].file_crc = crc32c(sample.bytes.data(), sample.bytes.size());
    return sample.bytes.size() == kSampleBytes;
  });
}

std::shared_ptr<const SeekPoints> MemberWriter::finish() {
  if (file_bytes_ == 0 || buffered_ > 0) write_member();
  flush();
  return SeekPoints::of(std::move(spans_), file_bytes_, nullptr);
}

}  // namespace tfrfast
