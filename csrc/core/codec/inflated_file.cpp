#include "core/codec/inflated_file.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/crc32c/crc32c.h"
#include "core/storage/local/local_file.h"

namespace tfrfast {
namespace {

// Instead of waiting for a span, a thread inflates one of this many next spans.
constexpr std::size_t kSpansAhead = 4;
// Data that hardly compress grow by at most this many bytes.
constexpr std::uint64_t kMostGrowth = 4 << 10;
// Padding or damage of any length may lie between a span's data and the next span's. A request for
// a span reaches at most this far past the span's inflated size.
constexpr std::uint64_t kMostBetween = 8 << 20;
constexpr std::uint64_t kMostPassedOver = 1 << 10;

}  // namespace

InflatedFile::InflatedFile(std::shared_ptr<const StoredFile> file, Compression compression,
                           std::shared_ptr<const SeekPoints> points, const StorageOptions& options)
    : StoredFile(file->path(), file->facts(), file->traits()),
      file_(std::move(file)),
      compression_(compression),
      points_(std::move(points)),
      owner_(SpanCache::instance().new_owner()),
      max_span_bytes_(SpanCache::instance().max_bytes()),
      mirror_(Mirror::of(*file_, options)) {}

InflatedFile::~InflatedFile() {
  SpanCache::instance().forget(owner_);
}

std::uint64_t InflatedFile::file_offset(std::uint64_t offset) const {
  const std::size_t number = points_->find(offset);
  if (number < points_->size()) return (*points_)[number].place.file_offset;
  return points_->file_end().value_or(file_->bytes());
}

std::string InflatedFile::describe_byte(std::uint64_t offset) const {
  const std::size_t number = points_->find(offset);
  return "byte " + std::to_string(offset) + " of the uncompressed stream (" +
         (number < points_->size() ? "inflated from" : "at") + " byte " +
         std::to_string(file_offset(offset)) + " of the file)";
}

CachedObject* InflatedFile::kept() const noexcept {
  return mirror_ == nullptr ? nullptr : mirror_->object(*points_);
}

void InflatedFile::read(std::span<const ReadRange> ranges) const {
  const CachedObject* const object = kept();
  read(ranges, object);
  if (object == nullptr || mapping() != nullptr) return;
  if (const std::uint8_t* const whole = object->whole(); whole != nullptr) {
    become_local(whole, kLocalTraits);
  }
}

void InflatedFile::read(std::span<const ReadRange> ranges, const CachedObject* kept) const {
  SharedSpan held;
  std::size_t number = 0;
  for (const ReadRange& range : ranges) {
    std::uint64_t offset = range.offset;
    std::uint8_t* out = range.out;
    for (std::size_t left = range.bytes; left > 0;) {
      if (held == nullptr || offset < held->begin || offset - held->begin >= held->bytes) {
        if (const std::size_t found = kept == nullptr ? 0 : kept->read(offset, out, left);
            found > 0) {
          out += found, left -= found, offset += found;
          continue;
        }
        const bool goes_on = held != nullptr && offset == held->begin + held->bytes;
        number = goes_on ? number + 1 : points_->find(offset);
        if (number >= points_->size()) throw_shrunk(offset);
        held = span(number);
        if (kept != nullptr) mirror_->keep(*points_, held);
      }
      const auto at = static_cast<std::size_t>(offset - held->begin);
      const std::size_t taken = std::min(left, held->bytes - at);
      std::memcpy(out, held->data() + at, taken);
      out += taken, left -= taken, offset += taken;
    }
  }
}

SharedSpan InflatedFile::span(std::size_t number) const {
  return SpanCache::instance().get(
      owner_, number, max_span_bytes_, [this, number] { return make(number); },
      [this, number] { inflate_ahead(number); });
}

// Inflates a span ahead while another thread inflates span `number`. A reader in order will need
// the next spans.
void InflatedFile::inflate_ahead(std::size_t number) const noexcept {
  SpanCache& cache = SpanCache::instance();
  try {
    if (number > 0 && !cache.has(owner_, number - 1)) return;
    const std::size_t end = std::min(points_->size(), number + 1 + kSpansAhead);
    for (std::size_t next = number + 1; next < end; ++next) {
      if (cache.has(owner_, next)) continue;
      cache.get(owner_, next, max_span_bytes_, [this, next] { return make(next); }, [] {});
      return;
    }
  } catch (const std::exception&) {
    // The reader of that span will report the error.
  }
}

// Takes the span from the mirror if another process has put it there. Otherwise inflates it.
SharedSpan InflatedFile::make(std::size_t number) const {
  CachedObject* const object = kept();
  if (object == nullptr) return inflate(number);
  const Span span = (*points_)[number];
  const FileRange range{span.begin, span.end - span.begin};
  if (object->has(range.offset, range.bytes)) {
    auto found = std::make_shared<InflatedSpan>();
    found->begin = range.offset;
    found->bytes = static_cast<std::size_t>(range.bytes);
    found->memory = PooledBuffer(found->bytes);
    std::uint8_t* const out = found->memory.data();
    if (object->read(range.offset, out, found->bytes) == found->bytes &&
        crc32c(out, found->bytes) == span.crc) {
      return found;
    }
  }
  return inflate(number);
}

SharedSpan InflatedFile::inflate(std::size_t number) const {
  const Span span = (*points_)[number];
  const auto bytes = static_cast<std::size_t>(span.end - span.begin);
  auto inflated = std::make_shared<InflatedSpan>();
  inflated->begin = span.begin;
  inflated->bytes = bytes;
  inflated->memory = PooledBuffer(bytes);
  std::uint8_t window[kDeflateWindowBytes];
  std::size_t window_bytes = 0;
  try {
    window_bytes = SeekPoints::inflate_window(span, window);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::stale_index) throw;
    throw_mismatch(span, "its seek point is damaged");
  }
  const std::span<const std::uint8_t> before(window, window_bytes);
  for (bool is_mended = false;; is_mended = true) {
    // Before damage, the survey ended the span where zlib stopped. Another inflater may stop
    // elsewhere.
    for (const auto kind : {Inflater::Kind::fastest, Inflater::Kind::zlib}) {
      if (inflate_as(kind, number, before, inflated->memory.data())) return inflated;
    }
    // The local copy may be damaged while the file is intact.
    if (is_mended || !file_->mend(file_range(number))) break;
  }
  throw_mismatch(span, "they inflate to something else");
}

// False if the output differs from the indexed span.
bool InflatedFile::inflate_as(Inflater::Kind kind, std::size_t number,
                              std::span<const std::uint8_t> window, std::uint8_t* out) const {
  const Span span = (*points_)[number];
  const auto bytes = static_cast<std::size_t>(span.end - span.begin);
  const FileRange range = file_range(number);
  const std::uint64_t range_end = range.offset + range.bytes;
  // Request the whole range at once, although it is read in pieces.
  std::unique_ptr<Announcement> announced;
  if (file_->traits().is_remote) announced = file_->announce({&range, 1}, Reads::the_same);
  if (announced != nullptr) announced->hurry();
  StreamInflater inflater(file_, compression_, kind, StreamInflater::Checks::none);
  inflater.expect_end(range_end);
  inflater.begin_at(span.place, window);
  std::size_t done = 0;
  while (done < bytes && inflater.end() == StreamEnd::none) {
    done += inflater.read({out + done, bytes - done});
  }
  // The inflater may not need the last bytes, which mark the end of the data. Reading the bytes
  // frees their piece.
  const std::uint64_t input_end = inflater.input_end();
  if (announced != nullptr && input_end < range_end && range_end - input_end <= kMostPassedOver) {
    std::uint8_t rest[kMostPassedOver];
    file_->read(input_end, rest, static_cast<std::size_t>(range_end - input_end));
  }
  return done == bytes && crc32c(out, bytes) == span.crc;
}

void InflatedFile::throw_mismatch(const Span& span, const char* what) const {
  throw Error(ErrorKind::stale_index,
              "The index does not fit: bytes " + std::to_string(span.begin) + " to " +
                  std::to_string(span.end) + " of the uncompressed stream of '" + path() +
                  "' should inflate from byte " + std::to_string(span.place.file_offset) +
                  " of the file, but " + what +
                  ". The file or its index was changed or damaged since it was indexed: index it "
                  "again with `tfrfast index --force " +
                  path() + "`, then open it again.",
              {path(), {}, static_cast<std::int64_t>(span.begin)});
}

// The bytes of the file that a span is inflated from. If two spans meet inside a byte, both ranges
// contain the byte.
FileRange InflatedFile::file_range(std::size_t number) const {
  const Span span = (*points_)[number];
  const std::uint64_t begin = span.place.file_offset - (span.place.bits > 0 ? 1 : 0);
  // The end of the last span may not be known yet.
  std::uint64_t end = points_->file_end().value_or(
      std::min(file_->bytes(), begin + (span.end - span.begin) + kMostGrowth));
  if (number + 1 < points_->size()) end = (*points_)[number + 1].place.file_offset;
  end = std::min(end, begin + (span.end - span.begin) + kMostBetween);
  return {begin, std::max(begin, end) - begin};
}

// Announces each span once, however many of its records are announced, and leaves out inflated
// spans.
std::unique_ptr<Announcement> InflatedFile::announce(std::span<const FileRange> ranges,
                                                     Reads) const noexcept {
  const CachedObject* const object = kept();
  if (mapping() != nullptr) return object->announce(ranges), nullptr;
  try {
    std::vector<std::size_t> spans;
    for (const FileRange& range : ranges) {
      std::uint64_t at = range.offset;
      const std::uint64_t end = std::min(at + range.bytes, bytes());
      if (at >= end) continue;
      for (std::size_t number = points_->find(at); number < points_->size() && at < end; ++number) {
        const std::uint64_t begin = (*points_)[number].begin;
        at = (*points_)[number].end;
        if (object != nullptr && object->has(begin, at - begin)) continue;
        if (!spans.empty() && spans.back() == number) continue;
        if (!SpanCache::instance().has(owner_, number)) spans.push_back(number);
      }
    }
    std::sort(spans.begin(), spans.end());
    spans.erase(std::unique(spans.begin(), spans.end()), spans.end());
    std::vector<FileRange> in_file;
    for (const std::size_t number : spans) in_file.push_back(file_range(number));
    return file_->announce(in_file, Reads::the_same);
  } catch (const std::exception&) {
    return nullptr;  // an announcement is only advice
  }
}

// The mirror's copy may be damaged while the shard is intact.
bool InflatedFile::mend(const FileRange& range) const noexcept {
  CachedObject* const object = kept();
  if (object == nullptr || range.offset >= bytes()) return false;
  try {
    const std::uint64_t end = range.offset + std::min(range.bytes, bytes() - range.offset);
    for (std::size_t number = points_->find(range.offset);
         number < points_->size() && (*points_)[number].begin < end; ++number) {
      const SharedSpan span = inflate(number);
      object->replace(span->begin, span->data(), span->bytes);
    }
    return true;
  } catch (const std::exception&) {
    return false;  // the shard is damaged, too
  }
}

bool InflatedFile::is_cached(std::uint64_t offset) const noexcept {
  if (mapping() != nullptr) return kept()->is_in_memory(offset);
  const std::size_t number = points_->find(offset);
  return SpanCache::instance().has(owner_, number) || file_->is_cached(file_offset(offset));
}

void InflatedFile::offer(std::size_t number, SharedSpan span, WalkedSpans kept) const {
  SpanCache& cache = SpanCache::instance();
  if (kept == WalkedSpans::last) cache.put(owner_, number, max_span_bytes_, std::move(span));
  if (kept == WalkedSpans::first) cache.put_if_room(owner_, number, std::move(span));
}

}  // namespace tfrfast
