// Presents a compressed shard as its uncompressed bytes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/codec/codec.h"
#include "core/codec/mirror.h"
#include "core/codec/seek_points.h"
#include "core/codec/span_cache.h"
#include "core/codec/stream_inflater.h"
#include "core/storage/storage_options.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// Which spans of a walk the SpanCache keeps.
enum class WalkedSpans : std::uint8_t {
  none,
  first,  // the first, while there is room: the records will be read after the walk
  last,   // the last: the records will be read during the walk
};

// Inflates whole spans and keeps the spans in the SpanCache. Compares every span with the checksum
// in its seek point. With a Mirror, reads kept pages from the mirror, and keeps inflated spans
// there. Once this process has compared all pages of the mirror, reads the mirror like a plain
// file. Throws Error stale_index if the file and the seek points do not match. As thread-safe and
// immutable as `file`, except that bytes() grows while seek points are collected.
class InflatedFile final : public StoredFile {
 public:
  // `options` may name a cache for the Mirror.
  InflatedFile(std::shared_ptr<const StoredFile> file, Compression compression,
               std::shared_ptr<const SeekPoints> points, const StorageOptions& options = {});
  ~InflatedFile() override;

  const std::shared_ptr<const StoredFile>& file() const noexcept { return file_; }
  Compression compression() const noexcept { return compression_; }
  const SeekPoints& seek_points() const noexcept { return *points_; }

  std::uint64_t bytes() const noexcept override { return points_->stream_bytes(); }
  bool is_inflated() const noexcept override { return true; }
  std::string describe_byte(std::uint64_t offset) const override;
  using StoredFile::read;
  void read(std::span<const ReadRange> ranges) const override;
  std::unique_ptr<Announcement> announce(std::span<const FileRange> ranges,
                                         Reads reads) const noexcept override;
  const StorageOptions& options() const noexcept override { return file_->options(); }
  bool mend(const FileRange& range) const noexcept override;
  bool is_cached(std::uint64_t offset) const noexcept override;
  FileFacts facts_now() const override { return file_->facts_now(); }
  bool is_still(const FileFacts& now) const noexcept override { return file_->is_still(now); }

  // When this file adds a span to the SpanCache, at most so many bytes of spans stay there. At
  // first, as many as the process may keep.
  void keep_at_most(std::size_t span_bytes) const noexcept {
    max_span_bytes_ = std::min(span_bytes, SpanCache::instance().max_bytes());
  }
  // Hands over an inflated span, so that read() need not inflate the span.
  void offer(std::size_t number, SharedSpan span, WalkedSpans kept) const;

  // The place in the file where inflating must begin to get byte `offset`.
  std::uint64_t file_offset(std::uint64_t offset) const;

 private:
  FileRange file_range(std::size_t number) const;
  CachedObject* kept() const noexcept;
  void read(std::span<const ReadRange> ranges, const CachedObject* kept) const;
  SharedSpan span(std::size_t number) const;
  SharedSpan make(std::size_t number) const;
  SharedSpan inflate(std::size_t number) const;
  bool inflate_as(Inflater::Kind kind, std::size_t number, std::span<const std::uint8_t> window,
                  std::uint8_t* out) const;
  void inflate_ahead(std::size_t number) const noexcept;
  [[noreturn]] void throw_mismatch(const Span& span, const char* what) const;

  const std::shared_ptr<const StoredFile> file_;
  const Compression compression_;
  const std::shared_ptr<const SeekPoints> points_;
  const std::uint64_t owner_;
  mutable std::atomic<std::size_t> max_span_bytes_;
  const std::unique_ptr<const Mirror> mirror_;  // may be null
};

}  // namespace tfrfast
