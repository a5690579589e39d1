#include "core/index/progressive_index.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tfrfast {
namespace {

using FoundFrames = ProgressiveIndex::FoundFrames;

// Returns the first of `count` records whose offset is `at` or more.
template <class OffsetOf>
std::uint64_t first_from(std::uint64_t count, std::uint64_t at, const OffsetOf& offset_of) {
  std::uint64_t low = 0;
  std::uint64_t high = count;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (offset_of(middle) < at) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

std::uint64_t first_record_from(const ShardIndex& index, std::uint64_t at) {
  return first_from(index.record_count(), at,
                    [&](std::uint64_t number) { return index.frame(number).offset; });
}

std::uint64_t first_offset_from(const OffsetPacker& offsets, std::uint64_t at) {
  return first_from(offsets.size(), at, [&](std::uint64_t number) { return offsets[number]; });
}

// Damage at the very end of the stream belongs to the file's last bytes.
std::uint64_t end_in_stream(const SeekPoints& points, std::uint64_t end, std::uint64_t file_bytes) {
  return end >= file_bytes ? std::numeric_limits<std::uint64_t>::max()
                           : points.first_byte_from(end);
}

template <class DamageList>
void add_damage(const DamageList& damage, std::uint64_t begin, std::uint64_t end,
                FoundFrames& found) {
  for (const Damage& each : damage) {
    if (each.begin >= begin && each.begin < end) found.damage.push_back(each);
  }
}

}  // namespace

FoundFrames frames_of(const ShardIndex& index, std::uint64_t begin, std::uint64_t end) {
  FoundFrames found;
  add_damage(index.damage(), begin, end, found);
  found.first_number = first_record_from(index, begin);
  const std::uint64_t after = first_record_from(index, end);
  if (after > found.first_number) {
    found.frames.reserve(static_cast<std::size_t>(after - found.first_number));
  }
  for (std::uint64_t number = found.first_number; number < after; ++number) {
    found.frames.push_back(index.frame(number));
  }
  return found;
}

FoundFrames frames_in_file_of(const ShardIndex& index, std::uint64_t begin, std::uint64_t end) {
  const SeekPoints* const points = index.seek_points().get();
  if (points == nullptr) return frames_of(index, begin, end);
  return frames_of(index, points->first_byte_from(begin),
                   end_in_stream(*points, end, index.facts().file_bytes));
}

ProgressiveIndex::ProgressiveIndex(const std::string& shard_path, IoMode io,
                                   const IndexOptions& options)
    : on_disk_(StoredFile::open(shard_path, io, options.storage)), options_(options) {
  const std::optional<Compression> resolved = resolve_compression(*on_disk_, options.compression);
  if (!resolved) {
    index_ = unreadable_shard(on_disk_, *options.compression).index;
    file_ = on_disk_;
    return;
  }
  compression_ = *resolved;
  index_ = find_index(*on_disk_, compression_, options);
  if (index_ == nullptr) {
    settled_ = on_disk_->await_settled();
    walk_ = std::make_unique<FrameWalk>(on_disk_, WalkOptions{.compression = compression_,
                                                              .kept = WalkedSpans::last,
                                                              .storage = options.storage});
    file_ = walk_->file();
  } else {
    file_ = as_indexed(on_disk_, *index_, options.storage);
  }
}

FoundFrames ProgressiveIndex::frames_in(std::uint64_t begin, std::uint64_t end) {
  std::shared_ptr<const ShardIndex> whole;
  {
    std::lock_guard lock(mutex_);
    if (index_ == nullptr) {
      walk_to(end);
      if (index_ == nullptr) return frames_of_walk(begin, end);
    }
    whole = index_;
  }
  return frames_of(*whole, begin, end);
}

FoundFrames ProgressiveIndex::frames_in_file(std::uint64_t begin, std::uint64_t end,
                                             const std::function<void()>& while_waiting) {
  if (compression_ == Compression::none) return frames_in(begin, end);
  std::shared_ptr<const ShardIndex> whole;
  {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
      if (while_waiting != nullptr) while_waiting();
      lock.lock();
    }
    if (failed_ahead_ != nullptr) std::rethrow_exception(std::exchange(failed_ahead_, nullptr));
    if (index_ == nullptr) {
      const std::shared_ptr<const SeekPoints> points = walk_->seek_points();
      const std::uint64_t file_bytes = on_disk_->bytes();
      while (!walk_->finished() && (end >= file_bytes || !points->cover_file_to(end))) {
        inflate_more();
      }
      const std::uint64_t stream_end = end_in_stream(*points, end, file_bytes);
      walk_to(stream_end);
      if (index_ == nullptr) return frames_of_walk(points->first_byte_from(begin), stream_end);
    }
    whole = index_;
  }
  return frames_in_file_of(*whole, begin, end);
}

void ProgressiveIndex::walk_ahead(std::uint64_t max_bytes) noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || compression_ == Compression::none || index_ != nullptr) return;
  if (failed_ahead_ != nullptr || walk_->finished() || file_->bytes() > max_bytes) return;
  try {
    inflate_more();
  } catch (...) {
    failed_ahead_ = std::current_exception();
  }
}

bool ProgressiveIndex::is_near_end(std::uint64_t stream_bytes) const noexcept {
  const std::uint64_t walked = walked_file_bytes_.load(std::memory_order_relaxed);
  if (walked == 0) return false;
  const std::uint64_t left = on_disk_->bytes() - std::min(walked, on_disk_->bytes());
  // Expects the rest to be as compressible.
  const double ratio = static_cast<double>(file_->bytes()) / static_cast<double>(walked);
  return static_cast<double>(left) * ratio <= static_cast<double>(stream_bytes);
}

void ProgressiveIndex::inflate_more() {
  walk_->advance(file_->bytes() + 1);
  walked_file_bytes_.store(walk_->file_bytes_done(), std::memory_order_relaxed);
}

std::shared_ptr<const ShardIndex> ProgressiveIndex::index() const {
  std::lock_guard lock(mutex_);
  return index_;
}

void ProgressiveIndex::walk_to(std::uint64_t end) {
  if (compression_ == Compression::none) end = std::min(end, file_->bytes());
  // The next frame's beginning reveals a frame's length, so the very end needs one more step.
  while (!walk_->finished() && walk_->position() < end) walk_->advance(end);
  if (walk_->position() >= file_->bytes() && !walk_->finished()) {
    walk_->advance(std::max(end, file_->bytes()));
  }
  if (walk_->finished()) finish();
}

void ProgressiveIndex::finish() {
  WalkedFrames walk = walk_->take();
  walk_ = nullptr;
  index_ = index_of(*on_disk_, compression_, std::move(walk), settled_);
  if (options_.use == IndexUse::automatic && options_.folder.empty()) {
    remember_walk(on_disk_, *index_, options_);
  }
}

FoundFrames ProgressiveIndex::frames_of_walk(std::uint64_t begin, std::uint64_t end) const {
  FoundFrames found;
  const OffsetPacker& offsets = walk_->offsets();
  const std::vector<Damage>& damage = walk_->damage();
  add_damage(damage, begin, end, found);
  found.first_number = first_offset_from(offsets, begin);
  const std::uint64_t after = first_offset_from(offsets, end);
  found.frames.reserve(static_cast<std::size_t>(after - found.first_number));
  auto gap = std::lower_bound(
      damage.begin(), damage.end(), found.first_number + 1,
      [](const Damage& each, std::uint64_t records) { return each.records_before < records; });
  for (std::uint64_t number = found.first_number; number < after; ++number) {
    const std::uint64_t at = offsets[number];
    std::uint64_t next = number + 1 == offsets.size() ? walk_->good_end() : offsets[number + 1];
    if (gap != damage.end() && gap->records_before == number + 1) {
      next = std::min(next, gap->begin);
      ++gap;
    }
    found.frames.push_back({at, next - at - kFrameOverhead});
  }
  return found;
}

}  // namespace tfrfast
