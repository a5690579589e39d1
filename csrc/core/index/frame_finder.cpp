#include "core/index/frame_finder.h"

#include <algorithm>

#include "core/crc32c/crc32c.h"
#include "core/index/walking.h"

namespace tfrfast {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;
// So many bytes may be read in vain, however small the shard.
constexpr std::uint64_t kLeastVainBytes = 64 << 20;
// What looking for one header elsewhere in the shard costs: a page.
constexpr std::uint64_t kProbeBytes = 4 << 10;

// The next offset in [from, end) of the window whose header's CRC holds and whose frame fits into
// the shard; else how far the window was searched. A leaf, for run_guarded().
struct HeaderSearch {
  std::uint64_t at = 0;
  bool found = false;
  std::uint64_t payload_bytes = 0;
};
HeaderSearch search_header(const ShardWindow& window, std::uint64_t from) noexcept {
  std::uint64_t at = from;
  for (; at < window.end && window.end - at >= kHeaderBytes; ++at) {
    const FrameHeader header = decode_header(window.bytes + (at - window.begin));
    const std::uint64_t left = window.shard_bytes - at;
    // Nearly every offset is refused by its size alone, before any CRC.
    if (left < kFrameOverhead || header.payload_bytes > left - kFrameOverhead) continue;
    if (header_is_intact(header)) return {at, true, header.payload_bytes};
  }
  return {at};
}

bool payload_is_intact(ShardWalker& walker, std::uint64_t frame, std::uint64_t payload_bytes) {
  std::uint32_t crc = 0;
  std::uint64_t at = frame + kHeaderBytes;
  for (std::uint64_t left = payload_bytes; left > 0;) {
    const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(left, kPieceBytes));
    const ShardWindow window = walker.window(at, piece);
    touch(walker, at, [&] { crc = crc32c(window.bytes + (at - window.begin), piece, crc); });
    at += piece;
    left -= piece;
  }
  const ShardWindow window = walker.window(at, kFooterBytes);
  MaskedCrc stored;
  touch(walker, at, [&] { stored = decode_footer(window.bytes + (at - window.begin)); });
  return stored == mask_crc(crc);
}

}  // namespace

FrameFinder::FrameFinder(const std::shared_ptr<const ShardFile>& file)
    : file_(file), vain_bytes_left_(kLeastVainBytes) {}

// A compressed shard may go on behind what cannot be inflated.
void FrameFinder::take_notice_of_growth() {
  if (file_->bytes() == shard_bytes_) return;
  vain_bytes_left_ += file_->bytes() - shard_bytes_;
  shard_bytes_ = file_->bytes();
  probe_ = walk(file_);
}

bool FrameFinder::vouched_for(std::uint64_t frame, std::uint64_t payload_bytes) {
  const std::uint64_t next = frame + kFrameOverhead + payload_bytes;
  if (shard_bytes_ - next >= kHeaderBytes && header_is_intact(header_at(*probe_, next))) {
    return true;
  }
  const std::uint64_t cost = kProbeBytes + payload_bytes;
  if (cost <= vain_bytes_left_ && payload_is_intact(*probe_, frame, payload_bytes)) return true;
  vain_bytes_left_ -= std::min(vain_bytes_left_, cost);
  return false;
}

FrameFinder::Found FrameFinder::find(ShardWalker& walker, std::uint64_t from) {
  take_notice_of_growth();
  while (from < shard_bytes_ && shard_bytes_ - from >= kFrameOverhead) {
    const ShardWindow window = walker.window(from, kHeaderBytes);
    const std::uint64_t end = std::min(window.end, from + kPieceBytes);
    HeaderSearch search;
    touch(walker, from, [&] {
      search = search_header({window.bytes, window.begin, end, window.shard_bytes}, from);
    });
    from = search.at;
    if (!search.found) {
      if (end == shard_bytes_) break;
      continue;
    }
    if (vouched_for(from, search.payload_bytes)) return {from, false};
    if (vain_bytes_left_ == 0) return {shard_bytes_, true};
    ++from;
  }
  return {shard_bytes_, false};
}

}  // namespace tfrfast
