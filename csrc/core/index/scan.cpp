#include "core/index/scan.h"

#include <algorithm>
#include <limits>

#include "core/deflate/inflating_walker.h"
#include "core/index/walking.h"

namespace tfrfast {
namespace {

constexpr std::size_t kChunkFrames = 4096;
// Beyond this, reading headers alone beats reading everything.
constexpr std::uint64_t kLargeFrameBytes = 256 << 10;
constexpr std::size_t kReadAheadBytes = 1 << 20;
constexpr std::size_t kLittleReadAheadBytes = 4 << 10;

// Beyond this an expectation is not worth memory: the first records may not be like the others.
constexpr std::uint64_t kMostExpectedFrames = std::uint64_t{1} << 24;

}  // namespace

ShardScanner::ShardScanner(const std::shared_ptr<const ShardFile>& file, Compression compression,
                           bool keep_spans)
    : file_(file), chunk_(kChunkFrames) {
  if (compression == Compression::none) {
    walker_ = walk(file_);
  } else {
    std::unique_ptr<InflatingWalker> walker = InflatingWalker::over(file, compression, keep_spans);
    file_ = walker->inflated();
    seek_points_ = walker->seek_points();
    walker_ = std::move(walker);
  }
  walker_->set_read_ahead(kReadAheadBytes);
}

void ShardScanner::advance(std::uint64_t limit) {
  if (finished_ || (at_ >= limit && at_ < file_->bytes())) return;
  ShardWindow window = walker_->window(at_, kHeaderBytes);
  // A mapped shard's window is the whole shard: do not run through all of it at once.
  if (limit < window.end) {
    window.end = std::max(limit, at_ + std::min<std::uint64_t>(window.end - at_, kHeaderBytes));
  }
  ScanStep step;
  touch(*walker_, at_, [&] { step = scan_frames(window, at_, chunk_.data(), chunk_.size()); });
  if (found_.offsets.empty() && step.frames > 0) {
    // Shards hold records of one kind: as many as the first ones promise, and some more.
    const std::uint64_t expected = file_->bytes() / (step.next / step.frames);
    found_.offsets.reserve(
        static_cast<std::size_t>(std::min(expected + expected / 16 + 16, kMostExpectedFrames)));
  }
  found_.offsets.insert(found_.offsets.end(), chunk_.begin(), chunk_.begin() + step.frames);
  if (step.frames > 0) {
    good_end_ = step.next;
    const bool large = (step.next - at_) / step.frames > kLargeFrameBytes;
    walker_->set_read_ahead(large ? kLittleReadAheadBytes : kReadAheadBytes);
  }
  at_ = step.next;

  switch (step.stop) {
    case ScanStop::out_of_room:
    case ScanStop::leaves_window:
      break;
    case ScanStop::clean_end:
      if (!walker_->reach(file_->bytes() + 1)) end({});
      break;
    case ScanStop::torn_header:
      if (!walker_->reach(file_->bytes() + 1)) end(DamageKind::torn_header);
      break;
    case ScanStop::torn_payload:
      take_large_frame();
      break;
    case ScanStop::bad_header:
      get_over_bad_header();
      break;
  }
}

void ShardScanner::lose(DamageKind kind, std::uint64_t end, std::uint64_t records) {
  if (!found_.damage.empty() && kind == DamageKind::bad_stream) {
    // Members without a good record, one after the other, are one loss.
    Damage& last = found_.damage.back();
    if (last.kind == kind && last.end == at_ && last.records_before == found_.offsets.size()) {
      last.end = end;
      return;
    }
  }
  found_.damage.push_back({kind, at_, end, found_.offsets.size(), records});
}

// An intact header promises more bytes than are known yet, if not more than there are.
void ShardScanner::take_large_frame() {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t payload_bytes = header_at(*walker_, at_).payload_bytes;
  const bool is_thinkable = payload_bytes <= kMost - kFrameOverhead - at_;
  const std::uint64_t frame_end = is_thinkable ? at_ + kFrameOverhead + payload_bytes : kMost;
  if (!walker_->reach(frame_end)) {
    end(DamageKind::torn_payload);
    return;
  }
  found_.offsets.push_back(at_);
  at_ = good_end_ = frame_end;
}

void ShardScanner::end(std::optional<DamageKind> torn) {
  if (walker_->ending() != ShardWalker::Ending::clean) {
    const std::uint64_t cut = file_->bytes();
    if (walker_->resume()) return get_over_bad_stream(cut);
  }
  finished_ = true;
  switch (walker_->ending()) {
    case ShardWalker::Ending::clean:
      break;
    case ShardWalker::Ending::truncated:
      torn = DamageKind::torn_stream;
      break;
    case ShardWalker::Ending::corrupt:
      torn = DamageKind::bad_stream;
      break;
  }
  if (torn) lose(*torn, file_->bytes(), at_ < file_->bytes() ? 1 : 0);
}

void ShardScanner::get_over_bad_header() {
  const FrameHeader bad = header_at(*walker_, at_);
  const FrameFinder::Found found = find_frame(at_ + 1);
  const bool only_crc_was_bad =
      found.at - at_ >= kFrameOverhead && bad.payload_bytes == found.at - at_ - kFrameOverhead;
  lose(found.gave_up ? DamageKind::lost_track : DamageKind::bad_header, found.at,
       only_crc_was_bad && !found.gave_up ? 1 : 0);
  at_ = found.at;
}

// The bytes from `cut` on are not those that followed the ones before.
void ShardScanner::get_over_bad_stream(std::uint64_t cut) {
  const FrameFinder::Found found = find_frame(cut);
  lose(DamageKind::bad_stream, found.at, 0);
  at_ = found.at;
}

FrameFinder::Found ShardScanner::find_frame(std::uint64_t from) {
  walker_->set_read_ahead(kReadAheadBytes);
  walker_->reach(std::numeric_limits<std::uint64_t>::max());  // the next one may be anywhere
  if (!finder_) finder_.emplace(file_);
  return finder_->find(*walker_, from);
}

std::uint64_t ShardScanner::file_bytes_done() const {
  return finished_ ? file_bytes() : walker_->file_bytes_before(at_);
}

ShardScan ShardScanner::take() {
  found_.offsets.push_back(good_end_);
  found_.seek_points = seek_points_;
  return std::move(found_);
}

ShardScan scan_shard(const std::shared_ptr<const ShardFile>& file, const ScanProgress& progress,
                     Compression compression) {
  ShardScanner scanner(file, compression);
  std::uint64_t reported = 0;
  while (!scanner.finished()) {
    scanner.advance(std::numeric_limits<std::uint64_t>::max());
    const std::uint64_t done = scanner.file_bytes_done();
    if (progress && done > reported) progress(done - reported), reported = done;
  }
  return scanner.take();
}

}  // namespace tfrfast
