// Keeps the inflated bytes of a compressed shard in a cache on this machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/codec/seek_points.h"
#include "core/codec/span_cache.h"
#include "core/storage/cache/cached_object.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// Spans are the blocks of a CachedObject. The object's identity holds the checksums of all spans,
// so a shard that inflates to other bytes has another object. Thread-safe, also across fork().
class Mirror {
 public:
  // Returns null if `options` names no cache for inflated bytes, or the cache does not work now.
  // Throws Error io if the folder cannot be a cache.
  static std::unique_ptr<Mirror> of(const StoredFile& file, const StorageOptions& options);
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  // Returns null until `points` are complete, and if the cache has no room for the object.
  CachedObject* object(const SeekPoints& points) const noexcept;

  // Keeps a span; does nothing the second time.
  void keep(const SeekPoints& points, const SharedSpan& span) const noexcept;

 private:
  Mirror(std::shared_ptr<const CacheSet> set, std::string name, const FileFacts& facts)
      : set_(std::move(set)), name_(std::move(name)), facts_(facts) {}
  std::shared_ptr<CachedObject> open(const SeekPoints& points) const noexcept;

  const std::shared_ptr<const CacheSet> set_;
  const std::string name_;
  const FileFacts facts_;
  const LazyCachedObject object_;
};

}  // namespace tfrfast
