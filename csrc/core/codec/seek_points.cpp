#include "core/codec/seek_points.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/crc32c/crc32c.h"
#include "core/storage/fault_guard.h"

namespace tfrfast {

std::uint32_t crc_of_sample(const StoredFile& file, std::uint64_t offset) {
  std::uint8_t sample[kSampleBytes];
  offset = std::min(offset, file.bytes());
  const auto count =
      static_cast<std::size_t>(std::min<std::uint64_t>(sizeof sample, file.bytes() - offset));
  file.read(offset, sample, count);
  return crc32c(sample, count);
}

void SeekPoints::add(Span span, std::vector<std::uint8_t> window) {
  const std::unique_lock lock(mutex_);
  if (!window.empty()) {
    windows_.push_back(std::move(window));
    span.window = windows_.back();
  }
  spans_.push_back(span);
}

std::shared_ptr<const SeekPoints> SeekPoints::of(std::vector<Span> spans, std::uint64_t file_end,
                                                 std::shared_ptr<const void> owner) {
  auto points = std::make_shared<SeekPoints>();
  points->spans_ = std::move(spans);
  points->owner_ = std::move(owner);
  points->file_end_ = file_end;
  points->complete_ = true;
  return points;
}

void SeekPoints::complete(std::uint64_t file_end) {
  const std::unique_lock lock(mutex_);
  file_end_ = file_end;
  complete_ = true;
}

void SeekPoints::pause(std::uint64_t file_end) {
  const std::unique_lock lock(mutex_);
  file_end_ = file_end;
}

std::size_t SeekPoints::size() const {
  const std::shared_lock lock(mutex_);
  return spans_.size();
}

std::uint64_t SeekPoints::stream_bytes() const {
  const std::shared_lock lock(mutex_);
  return spans_.empty() ? 0 : spans_.back().end;
}

std::optional<std::uint64_t> SeekPoints::file_end() const {
  const std::shared_lock lock(mutex_);
  return file_end_;
}

bool SeekPoints::is_complete() const {
  const std::shared_lock lock(mutex_);
  return complete_;
}

Span SeekPoints::operator[](std::size_t number) const {
  const std::shared_lock lock(mutex_);
  return spans_[number];
}

std::size_t SeekPoints::find(std::uint64_t offset) const {
  const std::shared_lock lock(mutex_);
  const auto found =
      std::upper_bound(spans_.begin(), spans_.end(), offset,
                       [](std::uint64_t at, const Span& span) { return at < span.end; });
  return static_cast<std::size_t>(found - spans_.begin());
}

std::size_t SeekPoints::inflate_window(const Span& span,
                                       std::span<std::uint8_t, kDeflateWindowBytes> out) {
  if (span.window.empty()) return 0;
  // The window may lie in a mapped index file.
  std::vector<std::uint8_t> deflated(span.window.size());
  const bool readable =
      run_guarded([&] { std::copy(span.window.begin(), span.window.end(), deflated.begin()); });
  Inflater::Inflated step{Inflater::Stop::corrupt};
  if (readable && crc32c(deflated.data(), deflated.size()) == span.window_crc) {
    const std::unique_ptr<Inflater> inflater = make_inflater(Inflater::Kind::fastest);
    inflater->begin();
    step = inflater->step(deflated, out, false);
  }
  // If the window is full, the stream's end mark may still be unread.
  if (step.stop == Inflater::Stop::corrupt || step.stop == Inflater::Stop::needs_input) {
    throw Error(ErrorKind::stale_index,
                "A seek point of the index is damaged or can no longer be read.");
  }
  return step.produced;
}

}  // namespace tfrfast
