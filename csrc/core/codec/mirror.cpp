#include "core/codec/mirror.h"

#include <exception>
#include <utility>

#include "core/base/hashing.h"
#include "core/storage/cache/cache_writer.h"
#include "core/storage/local/folders.h"

namespace tfrfast {

std::unique_ptr<Mirror> Mirror::of(const StoredFile& file, const StorageOptions& options) {
  const std::string path = file.traits().is_remote ? file.path() : absolute_path(file.path());
  // `tfrfast cache` shows the name. No path and no URL begins with "inflated ".
  std::string name = "inflated " + path;
  auto set = hold_inflated(name, options, file.traits().is_remote);
  if (set == nullptr) return nullptr;
  return std::unique_ptr<Mirror>(new Mirror(std::move(set), std::move(name), file.facts()));
}

CachedObject* Mirror::object(const SeekPoints& points) const noexcept {
  if (!object_.is_opened() && !points.is_complete()) return nullptr;
  return object_.get([&] { return open(points); }).get();
}

std::shared_ptr<CachedObject> Mirror::open(const SeekPoints& points) const noexcept {
  try {
    Fnv1a contents;
    std::vector<std::uint64_t> ends;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const Span span = points[i];
      if (span.end > span.begin) ends.push_back(span.end);
      const std::uint64_t words[] = {span.end, span.crc};
      contents.add(words, sizeof words);
    }
    const std::string identity = name_ + "\n" + std::to_string(facts_.bytes) + " " +
                                 std::to_string(facts_.mtime_ns) + " " +
                                 std::to_string(contents.value());
    return CachedObject::open(set_, name_, identity, points.stream_bytes(), std::move(ends));
  } catch (const std::exception&) {
    return nullptr;  // no memory
  }
}

void Mirror::keep(const SeekPoints& points, const SharedSpan& span) const noexcept {
  if (object(points) == nullptr || span->is_kept.exchange(true)) return;
  try {
    const std::shared_ptr<CachedObject>& object = object_.get([&] { return open(points); });
    if (object->has(span->begin, span->bytes)) return;
    CacheWriter::instance().add(
        object, span->begin, std::shared_ptr<const std::uint8_t>(span, span->data()), span->bytes);
  } catch (const std::exception&) {
    // No memory. The span is inflated again when needed.
  }
}

}  // namespace tfrfast
