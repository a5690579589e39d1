#include "core/index/frame_finder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/crc32c/crc32c.h"
#include "core/index/walking.h"
#include "core/shard/header_search.h"

namespace tfrfast {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;
// Even in a tiny shard, this many bytes may be read without result.
constexpr std::uint64_t kMinFruitlessBytes = 64 << 20;

}  // namespace

FrameFinder::FrameFinder(const std::shared_ptr<const StoredFile>& file, Step step,
                         std::optional<std::uint64_t> look_bytes)
    : file_(file),
      step_(std::move(step)),
      look_bytes_(look_bytes),
      fruitless_bytes_left_(kMinFruitlessBytes) {}

// A compressed shard grows while it is inflated.
void FrameFinder::take_notice_of_growth() {
  if (file_->bytes() == shard_bytes_) return;
  // Holes of a sparse file do not count: holes cost their maker nothing, but take long to read.
  const std::uint64_t data_bytes = std::max(file_->data_bytes(), data_bytes_);
  if (!look_bytes_) fruitless_bytes_left_ += data_bytes - data_bytes_;
  data_bytes_ = data_bytes;
  shard_bytes_ = file_->bytes();
  probe_ = walk(file_);
}

void FrameFinder::walk_to_end(ShardWalker& walker) {
  while (walker.reach(file_->bytes() + 1)) step_(file_->bytes());
  take_notice_of_growth();
}

bool FrameFinder::payload_is_intact(std::uint64_t frame, std::uint64_t payload_bytes) {
  std::uint32_t crc = 0;
  std::uint64_t at = frame + kHeaderBytes;
  for (std::uint64_t left = payload_bytes; left > 0;) {
    const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(left, kPieceBytes));
    const ShardWindow window = probe_->window(at, piece);
    touch(*probe_, at, [&] { crc = crc32c(window.bytes + (at - window.begin), piece, crc); });
    at += piece;
    left -= piece;
    step_(frame);
  }
  const ShardWindow window = probe_->window(at, kFooterBytes);
  MaskedCrc stored;
  touch(*probe_, at, [&] { stored = decode_footer(window.bytes + (at - window.begin)); });
  return stored == mask_crc(crc);
}

bool FrameFinder::is_frame(ShardWalker& walker, std::uint64_t at, std::uint64_t payload_bytes) {
  if (look_bytes_ && payload_bytes > *look_bytes_) return false;
  const std::uint64_t next = at + kFrameOverhead + payload_bytes;
  const bool has_next = walker.reach(next + kHeaderBytes);
  if (!has_next && !walker.reach(next)) return false;
  take_notice_of_growth();
  if (has_next && header_is_intact(header_at(*probe_, next))) return true;
  const std::uint64_t cost = file_->traits().gap_bytes + payload_bytes;
  // Walking on enlarges a compressed shard, and with it the number of bytes that may be read
  // without result.
  if (cost > fruitless_bytes_left_ && !look_bytes_) walk_to_end(walker);
  if (cost <= fruitless_bytes_left_ && payload_is_intact(at, payload_bytes)) return true;
  fruitless_bytes_left_ -= std::min(fruitless_bytes_left_, cost);
  return false;
}

FrameFinder::FoundFrame FrameFinder::find(ShardWalker& walker, std::uint64_t from) {
  constexpr std::uint64_t kNowhere = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t until =
      look_bytes_ && *look_bytes_ < kNowhere - kHeaderBytes - from ? from + *look_bytes_ : kNowhere;
  while (walker.reach(from + kFrameOverhead)) {
    if (from >= until) return {until, SearchEnd::not_looked};
    take_notice_of_growth();
    const ShardWindow window = walker.window(from, kHeaderBytes);
    std::uint64_t end = window.end - from > kPieceBytes ? from + kPieceBytes : window.end;
    if (until != kNowhere) end = std::min(end, until + kHeaderBytes - 1);
    HeaderSearch search;
    touch(walker, from, [&] {
      search = search_header({window.bytes, window.begin, end, walker.max_bytes()}, from);
    });
    from = search.at;
    step_(from);
    if (!search.found) {
      // A header may begin in a hole and end after the hole.
      const std::uint64_t data = file_->next_data(from);
      if (data - from >= kHeaderBytes) from = data - kHeaderBytes + 1;
      continue;
    }
    if (is_frame(walker, from, search.payload_bytes)) return {from, SearchEnd::found};
    ++from;
    if (fruitless_bytes_left_ > 0) continue;
    if (look_bytes_) return {from, SearchEnd::not_looked};
    walk_to_end(walker);
    if (fruitless_bytes_left_ == 0) return {file_->bytes(), SearchEnd::gave_up};
  }
  return {file_->bytes(), SearchEnd::none};
}

}  // namespace tfrfast
