#include "core/index/frame_walk.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/codec/inflating_limits.h"
#include "core/codec/inflating_walker.h"
#include "core/index/walking.h"

namespace tfrfast {
namespace {

constexpr std::size_t kChunkFrames = 4096;
// If frames have more than 1/kLargePart of a request's bytes, reading only the headers is faster.
constexpr std::uint64_t kLargePart = 4;
// With AtDamage::stop, this many bytes after a bad header are searched for the next record, which
// the error message names.
constexpr std::uint64_t kLookBytes = 1 << 20;

}  // namespace

FrameWalk::FrameWalk(const std::shared_ptr<const StoredFile>& file, const WalkOptions& options,
                     WalkProgress progress)
    : file_(file),
      at_damage_(options.at_damage),
      begin_(options.begin),
      progress_(std::move(progress)),
      chunk_(kChunkFrames),
      max_records_(options.compression == Compression::none
                       ? std::numeric_limits<std::uint64_t>::max()
                       : max_inflated_records()),
      at_(begin_),
      good_end_(begin_) {
  if (options.compression == Compression::none) {
    walker_ = walk(file_);
  } else {
    std::unique_ptr<InflatingWalker> walker = InflatingWalker::over(
        file, options.compression, options.kept, at_damage_, LookAhead(), options.storage);
    file_ = walker->inflated();
    seek_points_ = walker->seek_points();
    walker_ = std::move(walker);
  }
  walker_->expect(ShardWalker::Access::everything);
  walker_->set_pulse([this] { report(); });
}

void FrameWalk::report() {
  if (!progress_) return;
  const std::uint64_t done = std::max(file_bytes_done(), reported_bytes_);
  const std::uint64_t newly = done - reported_bytes_;
  reported_bytes_ = done;
  progress_(newly);
}

void FrameWalk::add(std::span<const std::uint64_t> offsets) {
  offsets_.append(offsets);
  if (offsets_.size() <= max_records_) return;
  throw Error(ErrorKind::memory,
              "'" + file_->path() + "' has more than " + std::to_string(max_records_) +
                  " records, in a file of " + std::to_string(file_bytes()) +
                  " bytes: a few compressed bytes can claim any number of empty records. If the "
                  "records are real, allow more with TFRFAST_MAX_RECORDS.",
              {file_->path(), static_cast<std::int64_t>(max_records_), {}});
}

void FrameWalk::advance(std::uint64_t limit) {
  if (finished_ || (at_ >= limit && at_ < file_->bytes())) return;
  ShardWindow window = walker_->window(at_, kHeaderBytes);
  // A mapped shard's window is the whole shard. Do not walk through all of the shard at once.
  if (limit < window.end) {
    window.end = std::max(limit, at_ + std::min<std::uint64_t>(window.end - at_, kHeaderBytes));
  }
  WalkStep step;
  touch(*walker_, at_, [&] { step = walk_frames(window, at_, chunk_.data(), chunk_.size()); });
  add({chunk_.data(), step.frames});
  if (step.frames > 0) {
    good_end_ = step.next;
    // If each request is a round trip, large requests for everything are faster than single
    // headers.
    const StorageTraits& traits = file_->traits();
    const bool large =
        !traits.is_remote && (step.next - at_) / step.frames > traits.request_bytes / kLargePart;
    walker_->expect(large ? ShardWalker::Access::here_and_there : ShardWalker::Access::everything);
  }
  at_ = step.next;

  switch (step.stop) {
    case WalkStop::out_of_space:
    case WalkStop::leaves_window:
      break;
    case WalkStop::clean_end:
      if (!walker_->reach(file_->bytes() + 1)) end({});
      break;
    case WalkStop::torn_header:
      if (!walker_->reach(file_->bytes() + 1)) end(DamageKind::torn_header);
      break;
    case WalkStop::torn_payload:
      take_large_frame();
      break;
    case WalkStop::bad_header:
      get_over_bad_header();
      break;
  }
  report();
}

void FrameWalk::lose(DamageKind kind, std::uint64_t end, std::uint64_t records) {
  if (!found_.damage.empty() && kind == DamageKind::bad_stream) {
    // Adjacent members without a good record count as one loss.
    Damage& last = found_.damage.back();
    if (last.kind == kind && last.end == at_ && last.records_before == offsets_.size()) {
      last.end = end;
      return;
    }
  }
  found_.damage.push_back({kind, at_, end, offsets_.size(), records});
}

// Handles an intact header that claims more bytes than are known so far. More bytes may come.
void FrameWalk::take_large_frame() {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t payload_bytes = header_at(*walker_, at_).payload_bytes;
  const bool is_possible = payload_bytes <= kMax - kFrameOverhead - at_;
  const std::uint64_t frame_end = is_possible ? at_ + kFrameOverhead + payload_bytes : kMax;
  if (!walker_->reach(frame_end)) {
    // Intact frames after this place may be copies of records inside the payload that was cut.
    end(DamageKind::torn_payload);
    return;
  }
  add({&at_, 1});
  at_ = good_end_ = frame_end;
}

void FrameWalk::end(std::optional<DamageKind> torn) {
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
  if (walker_->ending() != ShardWalker::Ending::clean && at_damage_ == AtDamage::stop) {
    found_.is_whole = false;  // readable members may follow
  }
}

void FrameWalk::get_over_bad_header() {
  const FrameHeader bad = header_at(*walker_, at_);
  const FrameFinder::FoundFrame found = find_frame(at_ + 1);
  const bool only_crc_was_bad =
      found.at - at_ >= kFrameOverhead && bad.payload_bytes == found.at - at_ - kFrameOverhead;
  DamageKind kind = DamageKind::bad_header;
  if (found.outcome == FrameFinder::SearchEnd::gave_up) kind = DamageKind::lost_track;
  if (found.outcome == FrameFinder::SearchEnd::not_looked) kind = DamageKind::unexplored;
  lose(kind, found.at, only_crc_was_bad && kind == DamageKind::bad_header ? 1 : 0);
  at_ = found.at;
  if (at_damage_ == AtDamage::get_over) return;
  found_.is_whole = false;
  finished_ = true;
}

// Data were lost at `cut`: the bytes after `cut` did not originally follow the bytes before `cut`.
void FrameWalk::get_over_bad_stream(std::uint64_t cut) {
  const FrameFinder::FoundFrame found = find_frame(cut);
  lose(DamageKind::bad_stream, found.at, 0);
  at_ = found.at;
}

FrameFinder::FoundFrame FrameWalk::find_frame(std::uint64_t from) {
  walker_->expect(ShardWalker::Access::everything);
  if (!finder_) {
    const auto on_step = [this](std::uint64_t at) {
      searched_ = at;
      report();
    };
    finder_.emplace(file_, on_step,
                    at_damage_ == AtDamage::stop ? std::optional(kLookBytes) : std::nullopt);
  }
  return finder_->find(*walker_, from);
}

std::uint64_t FrameWalk::file_bytes_done() const {
  return finished_ ? file_bytes() : walker_->file_bytes_before(std::max(at_, searched_));
}

WalkedFrames FrameWalk::take_all() {
  while (!finished_) advance(std::numeric_limits<std::uint64_t>::max());
  return take();
}

WalkedFrames FrameWalk::take() {
  offsets_.append({&good_end_, 1});
  found_.offsets = std::move(offsets_).finish();
  found_.seek_points = seek_points_;
  return std::move(found_);
}

WalkedFrames walk_shard(const std::shared_ptr<const StoredFile>& file, const WalkProgress& progress,
                        Compression compression, AtDamage at_damage) {
  FrameWalk walk(file, {compression, WalkedSpans::none, at_damage}, progress);
  return walk.take_all();
}

}  // namespace tfrfast
