#include "core/codec/mirror.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <utility>

#include "core/base/hashing.h"
#include "core/storage/cache/cache_writer.h"
#include "core/storage/local/folders.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kPage = kCachePageBytes;
// The max number of seams of one shard. A shard of 8 GiB that is read at random seldom has more.
constexpr std::size_t kMaxSeams = 4096;

}  // namespace

std::unique_ptr<Mirror> Mirror::of(const StoredFile& file, const StorageOptions& options) {
  const std::string path = file.traits().is_remote ? file.path() : absolute_path(file.path());
  // `tfrfast cache` shows the name. No path and no URL begins with "inflated ".
  std::string name = "inflated " + path;
  auto set = hold_inflated(name, options, file.traits().is_remote);
  if (set == nullptr) return nullptr;
  return std::unique_ptr<Mirror>(new Mirror(std::move(set), std::move(name), file.facts()));
}

Mirror::~Mirror() {
  delete object_.load();
}

CachedObject* Mirror::object(const SeekPoints& points) const noexcept {
  std::shared_ptr<CachedObject>* known = object_.load(std::memory_order_acquire);
  if (known == nullptr) {
    if (!points.is_complete()) return nullptr;
    // Takes no lock, because a forked child could inherit a held lock. If two threads make an
    // object, one object is dropped.
    auto made = std::unique_ptr<std::shared_ptr<CachedObject>>(
        new (std::nothrow) std::shared_ptr<CachedObject>(open(points)));
    if (made == nullptr) return nullptr;
    if (object_.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) {
      known = made.release();
    }
  }
  return known->get();
}

std::shared_ptr<CachedObject> Mirror::open(const SeekPoints& points) const noexcept {
  try {
    Fnv1a contents;
    const std::size_t count = points.size();
    for (std::size_t i = 0; i < count; ++i) {
      const Span span = points[i];
      const std::uint64_t words[] = {span.end, span.crc};
      contents.add(words, sizeof words);
    }
    const std::string identity = name_ + "\n" + std::to_string(facts_.bytes) + " " +
                                 std::to_string(facts_.mtime_ns) + " " +
                                 std::to_string(contents.value());
    return CachedObject::open(set_, name_, identity, points.stream_bytes());
  } catch (const std::exception&) {
    return nullptr;  // no memory
  }
}

void Mirror::keep(const SeekPoints& points, const SharedSpan& span) const noexcept {
  if (object(points) == nullptr || span->is_kept.exchange(true)) return;
  try {
    const std::shared_ptr<CachedObject>& object = *object_.load(std::memory_order_acquire);
    if (object->has(span->begin, span->bytes)) return;
    const std::uint64_t end = span->begin + span->bytes, stream_bytes = points.stream_bytes();
    CacheWriter::instance().add(
        object, span->begin, std::shared_ptr<const std::uint8_t>(span, span->data()), span->bytes);
    const std::uint64_t first = span->begin / kPage, last = (end - 1) / kPage;
    const bool ends_inside = end % kPage != 0 && end != stream_bytes;
    if (span->begin % kPage != 0) fill_seam(object, first, stream_bytes, *span);
    if (ends_inside && (last != first || span->begin % kPage == 0)) {
      fill_seam(object, last, stream_bytes, *span);
    }
  } catch (const std::exception&) {
    // No memory. The span is inflated again when needed.
  }
}

void Mirror::fill_seam(const std::shared_ptr<CachedObject>& object, std::uint64_t page,
                       std::uint64_t stream_bytes, const InflatedSpan& span) const {
  const std::uint64_t begin = page * kPage;
  const auto page_bytes = static_cast<std::size_t>(std::min(kPage, stream_bytes - begin));
  if (object->has(begin, page_bytes)) return;
  const std::uint64_t from = std::max(begin, span.begin);
  const std::uint64_t to = std::min(begin + page_bytes, span.begin + span.bytes);
  std::shared_ptr<std::uint8_t[]> whole;
  {
    const std::lock_guard lock(cache_mutex());
    if (seams_.size() >= kMaxSeams && !seams_.contains(page)) seams_.erase(seams_.begin());
    Seam& seam = seams_[page];
    if (std::find(seam.parts.begin(), seam.parts.end(), from) != seam.parts.end()) return;
    seam.parts.push_back(from);
    if (seam.bytes == nullptr) seam.bytes.reset(new std::uint8_t[kPage]);
    std::memcpy(seam.bytes.get() + (from - begin), span.data() + (from - span.begin),
                static_cast<std::size_t>(to - from));
    seam.filled += static_cast<std::size_t>(to - from);
    if (seam.filled < page_bytes) return;
    whole = std::move(seam.bytes);
    seams_.erase(page);
  }
  CacheWriter::instance().add(object, begin,
                              std::shared_ptr<const std::uint8_t>(whole, whole.get()), page_bytes);
}

}  // namespace tfrfast
