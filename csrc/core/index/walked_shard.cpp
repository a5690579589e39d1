#include "core/index/walked_shard.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/codec/inflated_file.h"

namespace tfrfast {
namespace {

// A walk asks for so many bytes at once.
constexpr std::uint64_t kStepBytes = 1 << 20;

// The frames and the damage that are known of a shard, or of a part from `first` on.
template <class FrameOf>
struct KnownFrames {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::span<const Damage> damage;  // records_before counts from `first`
  bool is_whole = false;           // nothing follows
  FrameOf frame;                   // frame(i): the i-th frame, unless damage cuts its bytes
};

// Damage at `from.byte` or later comes after `from`.
bool is_after(const Damage& damage, const ShardPlace& from) noexcept {
  return damage.begin >= from.byte;
}

std::uint64_t end_of(const Frame& frame) noexcept {
  return frame.offset + frame.payload_bytes + kFrameOverhead;
}

template <class FrameOf>
WalkedShard::PassedFrames stretch_of(const KnownFrames<FrameOf>& known, const ShardPlace& from,
                                     std::uint64_t max_frames, std::uint64_t max_bytes,
                                     std::vector<Frame>* frames) {
  const std::uint64_t begin = from.number - known.first;
  const auto damage =
      std::lower_bound(known.damage.begin(), known.damage.end(), from.byte,
                       [](const Damage& each, std::uint64_t byte) { return each.begin < byte; });
  const bool is_damaged = damage != known.damage.end();
  const std::uint64_t last = is_damaged ? damage->records_before : known.count;
  std::uint64_t end = begin + std::min(max_frames, last - std::min(begin, last));
  // The first frame too far away, or `end`.
  if (end > begin + 1 && known.frame(end - 1).offset - from.byte >= max_bytes) {
    std::uint64_t low = begin + 1;
    while (low < end) {
      const std::uint64_t middle = low + (end - low) / 2;
      if (known.frame(middle).offset - from.byte < max_bytes) {
        low = middle + 1;
      } else {
        end = middle;
      }
    }
  }
  WalkedShard::PassedFrames stretch{{from.byte, known.first + end}, {}, false};
  if (frames != nullptr) {
    frames->reserve(frames->size() + static_cast<std::size_t>(end - begin));
    for (std::uint64_t i = begin; i < end; ++i) frames->push_back(known.frame(i));
  }
  if (end > begin) {
    stretch.next.byte = end_of(known.frame(end - 1));
    if (is_damaged && end == last) {
      stretch.next.byte = std::min(stretch.next.byte, damage->begin);
      if (frames != nullptr) {
        Frame& cut = frames->back();
        cut.payload_bytes = stretch.next.byte - cut.offset - kFrameOverhead;
      }
    }
  } else if (is_damaged) {
    stretch.damage = *damage;
    stretch.damage->records_before += known.first;
    // After damage without bytes, a byte more, so that the damage is passed.
    stretch.next.byte = std::max(damage->end, damage->begin + 1);
  } else {
    stretch.is_end = known.is_whole && begin >= known.count;
  }
  return stretch;
}

}  // namespace

WalkedShard::WalkedShard(const std::string& shard_path, IoMode io, const IndexOptions& options)
    : on_disk_(StoredFile::open(shard_path, io, options.storage)), options_(options) {
  const std::optional<Compression> resolved = resolve_compression(*on_disk_, options.compression);
  file_ = on_disk_;
  if (!resolved) {
    index_ = unreadable_shard(on_disk_, *options.compression).index;
    return;
  }
  compression_ = *resolved;
  index_ = find_index(*on_disk_, compression_, options);
  if (index_ != nullptr) {
    file_ = as_indexed(on_disk_, *index_, options.storage);
    return;
  }
  settled_ = on_disk_->await_settled();
  if (compression_ == Compression::none) return;
  walk_ = std::make_unique<FrameWalk>(on_disk_, WalkOptions{.compression = compression_,
                                                            .kept = WalkedSpans::last,
                                                            .storage = options.storage});
  file_ = walk_->file();
}

std::shared_ptr<const ShardIndex> WalkedShard::index() const {
  const std::lock_guard lock(mutex_);
  return index_;
}

void WalkedShard::keep_at_most(std::size_t span_bytes) const noexcept {
  if (!file_->is_inflated()) return;
  static_cast<const InflatedFile&>(*file_).keep_at_most(span_bytes);
}

WalkedShard::PassedFrames WalkedShard::pass(const ShardPlace& from, std::uint64_t max_frames,
                                            std::uint64_t max_bytes, std::vector<Frame>* frames) {
  std::unique_lock lock(mutex_);
  if (index_ == nullptr) walk(from, max_frames, max_bytes);
  if (const std::shared_ptr<const ShardIndex> index = index_; index != nullptr) {
    lock.unlock();
    const auto frame = [&](std::uint64_t number) { return index->frame(number); };
    const KnownFrames<decltype(frame)> known{0, index->record_count(), index->damage(), true,
                                             frame};
    return stretch_of(known, from, max_frames, max_bytes, frames);
  }
  const OffsetPacker& offsets = walk_->offsets();
  const auto frame = [&](std::uint64_t i) -> Frame {
    const std::uint64_t at = offsets[i];
    const std::uint64_t next = i + 1 == offsets.size() ? walk_->good_end() : offsets[i + 1];
    return {at, next - at - kFrameOverhead};
  };
  const KnownFrames<decltype(frame)> known{first_number_, offsets.size(), walk_->damage(),
                                           walk_->finished(), frame};
  return stretch_of(known, from, max_frames, max_bytes, frames);
}

// Walks until the frames are known, and as far as a place in the middle of the shard. Only a plain
// shard can be walked from there.
void WalkedShard::walk(const ShardPlace& from, std::uint64_t max_frames, std::uint64_t max_bytes) {
  if (walk_ == nullptr || from.number < first_number_) {
    walk_ = std::make_unique<FrameWalk>(
        on_disk_,
        WalkOptions{.storage = options_.storage, .begin = std::min(from.byte, on_disk_->bytes())});
    first_number_ = from.number;
  }
  const std::uint64_t before = from.number - first_number_;
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t end = from.byte < kMax - max_bytes ? from.byte + max_bytes : kMax;
  const auto is_enough = [&] {
    if (!walk_->damage().empty() && is_after(walk_->damage().back(), from)) return true;
    const std::uint64_t found = walk_->offsets().size();
    return found > before && (found - before >= max_frames || walk_->position() >= end);
  };
  while (!walk_->finished() && !is_enough()) walk_->advance(walk_->position() + kStepBytes);
  if (walk_->finished() && first_number_ == 0 && walk_->is_of_whole_shard()) finish();
}

void WalkedShard::finish() {
  WalkedFrames walk = walk_->take();
  walk_ = nullptr;
  index_ = index_of(*on_disk_, compression_, std::move(walk), settled_);
  if (options_.use == IndexUse::automatic && options_.folder.empty()) {
    keep_in_cache(*index_, on_disk_->path());
  }
}

}  // namespace tfrfast
