#include "core/codec/inflating_walker.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/crc32c/crc32c.h"

namespace tfrfast {
namespace {

// Bytes kept of the previous span, so that a header across two spans is seen whole.
constexpr std::size_t kLeadBytes = kPoolAlignment;
static_assert(kLeadBytes >= kHeaderBytes);

constexpr std::size_t kSpaceForLastBlock = 256 << 10;

[[noreturn]] void throw_block_too_long(const InflatedFile& file, std::uint64_t offset) {
  throw Error(ErrorKind::io,
              "'" + file.path() +
                  "' cannot be read at random: it holds a deflate block of more than " +
                  std::to_string(kMaxSpanBytes >> 20) + " MiB after " + file.describe_byte(offset) +
                  ". Decompress it, or compress it again with `gzip`.",
              {file.path(), {}, static_cast<std::int64_t>(offset)}, EFBIG);
}

}  // namespace

std::unique_ptr<InflatingWalker> InflatingWalker::over(std::shared_ptr<const StoredFile> file,
                                                       Compression compression, WalkedSpans kept,
                                                       AtDamage at_damage, LookAhead ahead,
                                                       const StorageOptions& options) {
  auto points = std::make_shared<SeekPoints>();
  auto inflated =
      std::make_shared<const InflatedFile>(std::move(file), compression, points, options);
  return std::unique_ptr<InflatingWalker>(new InflatingWalker(
      std::move(inflated), std::move(points), kept, at_damage, std::move(ahead)));
}

InflatingWalker::InflatingWalker(std::shared_ptr<const InflatedFile> inflated,
                                 std::shared_ptr<SeekPoints> points, WalkedSpans kept,
                                 AtDamage at_damage, LookAhead ahead)
    : ShardWalker(inflated),
      inflated_(inflated),
      points_(std::move(points)),
      kept_(kept),
      at_damage_(at_damage),
      ahead_(std::move(ahead)),
      inflater_(inflated->file(), inflated->compression(), Inflater::Kind::fastest,
                StreamInflater::Checks::members) {
  ahead_.come_far(*inflated_->file(), 0);
  inflater_.begin();
  begin_next();
}

ShardWindow InflatingWalker::window(std::uint64_t offset, std::size_t wanted) {
  reach(offset + std::min<std::size_t>(wanted, kHeaderBytes));
  const std::uint64_t known = file().bytes();
  if (current_ != nullptr) {
    const std::uint64_t lead = std::min<std::uint64_t>(current_->lead, current_->begin);
    const std::uint64_t held = current_->begin - lead;
    if (offset >= held) return {current_->data() - lead, held, known, known};
  }
  if (again_ == nullptr) again_ = walk(inflated_);
  again_->expect(expected());
  ShardWindow window = again_->window(offset, wanted);
  window.shard_bytes = known;  // may exceed the size that `again_` read
  return window;
}

bool InflatingWalker::reach(std::uint64_t bytes) {
  while (file().bytes() < bytes) {
    if (!inflate_next()) return false;
  }
  return true;
}

std::uint64_t InflatingWalker::max_bytes() const {
  const std::uint64_t known = file().bytes();
  if (inflater_.end() != StreamEnd::none) return known;
  // Counts one more byte of input: the inflater may hold back output of consumed input.
  const std::uint64_t left = inflated_->file()->bytes() - inflater_.file_offset();
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  return left + 1 > (kMax - known) / kMaxRatio ? kMax : known + (left + 1) * kMaxRatio;
}

bool InflatingWalker::inflate_next() {
  if (inflater_.end() != StreamEnd::none) return false;
  std::shared_ptr<InflatedSpan> span = inflate_span();
  if (ending() != Ending::clean && inflater_.kind() != Inflater::Kind::zlib) {
    // Another inflater may meet the damage a few bytes earlier or later than zlib. Every machine
    // must find the same records before the damage.
    std::uint8_t window[kDeflateWindowBytes];
    inflater_.repeat_with_zlib(mark_, inflate_window(window));
    span = inflate_span();
  }
  if (ending() != Ending::clean) find_next_member(*span);
  if (span->bytes > 0) {
    next_.begin = span->begin;
    next_.end = span->begin + span->bytes;
    next_.crc = crc32c(span->data(), span->bytes);
    inflated_->offer(points_->size(), span, kept_);
    points_->add(next_, std::move(next_window_));
    current_ = std::move(span);
  }
  if (inflater_.end() == StreamEnd::none) {
    begin_next();
  } else if (inflater_.end() == StreamEnd::clean) {
    points_->complete(inflater_.file_offset());
  } else {
    points_->pause(inflater_.file_offset());
  }
  return true;
}

std::shared_ptr<InflatedSpan> InflatingWalker::inflate_span() {
  auto span = std::make_shared<InflatedSpan>();
  span->begin = file().bytes();
  span->lead = kLeadBytes;
  std::size_t space = kSpanBytes + kSpaceForLastBlock;
  PooledBuffer memory(kLeadBytes + space);
  if (current_ != nullptr) {
    std::memcpy(memory.data(), current_->data() + current_->bytes - kLeadBytes, kLeadBytes);
  }
  std::size_t& done = span->bytes;
  while (inflater_.end() == StreamEnd::none) {
    if (done == space) {
      if (done >= kMaxSpanBytes) throw_block_too_long(*inflated_, span->begin);
      const auto more = static_cast<std::size_t>(std::min<std::uint64_t>(2 * space, kMaxSpanBytes));
      PooledBuffer larger(kLeadBytes + more);
      std::memcpy(larger.data(), memory.data(), kLeadBytes + space);
      memory = std::move(larger);
      space = more;
    }
    const std::uint64_t come = inflater_.file_offset() + span->begin + done;
    if (come - pulsed_at_ >= kSpanBytes) pulsed_at_ = come, pulse()();
    const bool is_long = done >= kSpanBytes;
    const std::size_t end = is_long ? std::min(space, done + kSpanBytes) : kSpanBytes;
    ahead_.come_far(*inflated_->file(), inflater_.input_end());
    done += inflater_.read({memory.data() + kLeadBytes + done, end - done}, is_long);
    // A span that begins with a member needs no window.
    const bool begins_member = inflater_.member_bytes() == 0;
    if (inflater_.at_boundary() && done >= (begins_member ? kSpanBytes / 2 : kSpanBytes)) break;
  }
  span->memory = std::move(memory);
  return span;
}

void InflatingWalker::begin_next() {
  next_ = Span();
  mark_ = inflater_.mark();
  next_.place = mark_.place;
  const std::span<const std::uint8_t> sample = inflater_.peek(kSampleBytes);
  next_.file_crc = crc32c(sample.data(), sample.size());
  const auto window_bytes = static_cast<std::size_t>(
      std::min<std::uint64_t>(kDeflateWindowBytes, inflater_.member_bytes()));
  next_window_.clear();
  if (window_bytes == 0) return;
  const std::uint8_t* end = current_->data() + current_->bytes;
  const auto deflated = window_deflater_.deflate({end - window_bytes, window_bytes});
  next_window_.assign(deflated.begin(), deflated.end());
  next_.window_crc = crc32c(next_window_.data(), next_window_.size());
}

// The window before the next span.
std::span<const std::uint8_t> InflatingWalker::inflate_window(
    std::span<std::uint8_t, kDeflateWindowBytes> out) {
  Span begin = next_;
  begin.window = next_window_;
  return out.first(SeekPoints::inflate_window(begin, out));
}

// The inflater may have read past the damaged member's end, into the next member. The output of the
// next member's bytes is cut off, so that no byte of the file counts twice.
void InflatingWalker::find_next_member(InflatedSpan& span) {
  const Compression compression = inflated_->compression();
  if (at_damage_ == AtDamage::stop || codec_of(compression).find_member == nullptr) return;
  if (!finder_) finder_.emplace(inflated_->file(), compression, pulse());
  next_member_ = finder_->find(std::max(inflater_.member_offset() + 1, next_.place.file_offset));
  const bool overlaps = next_member_ && *next_member_ < inflater_.file_offset();
  if (!overlaps || span.bytes == 0) return;
  std::uint8_t window[kDeflateWindowBytes];
  StreamInflater inflater(inflated_->file(), compression, Inflater::Kind::zlib,
                          StreamInflater::Checks::none);
  inflater.take_for_end(*next_member_);
  inflater.begin_at(next_.place, inflate_window(window));
  PooledBuffer again(span.bytes);
  std::size_t done = 0;
  while (done < span.bytes && inflater.end() == StreamEnd::none) {
    done += inflater.read({again.data() + done, span.bytes - done});
  }
  span.bytes = done;
}

bool InflatingWalker::resume() {
  if (ending() == Ending::clean) return false;
  if (!next_member_) {
    points_->complete(inflater_.file_offset());
    return false;
  }
  inflater_.begin(*next_member_);
  next_member_.reset();
  begin_next();
  again_ = nullptr;  // the old walker may believe that the stream ends at the damage
  return true;
}

std::uint64_t InflatingWalker::file_bytes_before(std::uint64_t offset) const {
  return std::min(inflated_->file_offset(offset), inflater_.file_offset());
}

ShardWalker::Ending InflatingWalker::ending() const {
  switch (inflater_.end()) {
    case StreamEnd::truncated:
      return Ending::truncated;
    case StreamEnd::corrupt:
      return Ending::corrupt;
    case StreamEnd::none:
    case StreamEnd::clean:
      break;
  }
  return Ending::clean;
}

}  // namespace tfrfast
