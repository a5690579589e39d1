// Keeps the inflated bytes of a compressed shard in a cache on this machine.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/codec/seek_points.h"
#include "core/codec/span_cache.h"
#include "core/storage/cache/cached_object.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// Writes spans as pages of a CachedObject. The object's identity holds the checksums of all spans,
// so a shard that inflates to other bytes has another object. Thread-safe, also across fork().
class Mirror {
 public:
  // Returns null if `options` names no cache for inflated bytes, or the cache does not work now.
  // Throws Error io if the folder cannot be a cache.
  static std::unique_ptr<Mirror> of(const StoredFile& file, const StorageOptions& options);
  ~Mirror();
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  // Returns null until `points` are complete, and if the cache has no room for the object.
  CachedObject* object(const SeekPoints& points) const noexcept;

  // Keeps a span; does nothing the second time. A page that two spans share is kept once this
  // process has kept both spans.
  void keep(const SeekPoints& points, const SharedSpan& span) const noexcept;

 private:
  // A page that several spans share.
  struct Seam {
    std::shared_ptr<std::uint8_t[]> bytes;
    std::size_t filled = 0;
    std::vector<std::uint64_t> parts;  // begins of the parts that are filled
  };
  Mirror(std::shared_ptr<const CacheSet> set, std::string name, const FileFacts& facts)
      : set_(std::move(set)), name_(std::move(name)), facts_(facts) {}
  std::shared_ptr<CachedObject> open(const SeekPoints& points) const noexcept;
  void fill_seam(const std::shared_ptr<CachedObject>& object, std::uint64_t page,
                 std::uint64_t stream_bytes, const InflatedSpan& span) const;

  const std::shared_ptr<const CacheSet> set_;
  const std::string name_;
  const FileFacts facts_;
  // Null until the first use. Points at null if there is no object.
  mutable std::atomic<std::shared_ptr<CachedObject>*> object_{nullptr};
  mutable std::map<std::uint64_t, Seam> seams_;  // by page; guarded by cache_mutex()
};

}  // namespace tfrfast
