#include "core/index/seek_section.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/codec/seek_points.h"
#include "core/crc32c/crc32c.h"
#include "core/storage/fault_guard.h"

namespace tfrfast {
namespace {

// Exceeds the deflated size of 32 KiB of incompressible bytes.
constexpr std::uint32_t kMaxWindowBytes = 34 << 10;

}  // namespace

std::vector<std::uint8_t> seek_section_of(const SeekPoints& points, std::uint32_t* crc) {
  const SeekHeader header{points.size(), points.file_end().value_or(0)};
  const std::size_t windows_at = sizeof header + points.size() * sizeof(SpanEntry);
  std::vector<std::uint8_t> section(windows_at);
  std::memcpy(section.data(), &header, sizeof header);
  for (std::size_t number = 0; number < points.size(); ++number) {
    const Span span = points[number];
    const std::size_t at = section.size();
    const SpanEntry entry{span.end,
                          span.place.file_offset,
                          at,
                          static_cast<std::uint32_t>(span.window.size()),
                          span.window_crc,
                          span.crc,
                          span.file_crc,
                          span.place.bits};
    section.resize(at + span.window.size());
    std::memcpy(&section[sizeof header + number * sizeof entry], &entry, sizeof entry);
    if (!run_guarded(
            [&] { std::copy(span.window.begin(), span.window.end(), section.data() + at); })) {
      throw Error(ErrorKind::stale_index, "The index's seek points can no longer be read.");
    }
  }
  *crc = crc32c(section.data(), windows_at);
  return section;
}

std::shared_ptr<const SeekPoints> load_seek_section(const std::shared_ptr<const IndexBytes>& bytes,
                                                    const Section& section, std::uint32_t crc,
                                                    const ShardFacts& facts) {
  if (section.bytes < sizeof(SeekHeader) || !bytes->holds<SeekHeader>(section.at, 1) ||
      !bytes->holds<std::uint8_t>(section.at, section.bytes)) {
    return nullptr;
  }
  const SeekHeader header = bytes->copy<SeekHeader>(section.at, 1).front();
  if (header.span_count > (section.bytes - sizeof header) / sizeof(SpanEntry)) return nullptr;
  const auto entries = bytes->copy<SpanEntry>(section.at + sizeof header, header.span_count);
  const std::uint32_t found = crc32c(bytes_of(entries.data()), entries.size() * sizeof(SpanEntry),
                                     crc32c(bytes_of(&header), sizeof header));
  if (found != crc || header.file_end > facts.file_bytes) return nullptr;
  std::vector<Span> spans;
  spans.reserve(entries.size());
  std::uint64_t begin = 0;
  std::uint64_t file_begin = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const SpanEntry& each = entries[i];
    const std::uint64_t span_file_end =
        i + 1 < entries.size() ? entries[i + 1].file_offset : header.file_end;
    const bool is_sane = each.end > begin && each.file_offset > file_begin &&
                         span_file_end >= each.file_offset && span_file_end <= facts.file_bytes &&
                         each.bits < 8 && each.end - begin <= kMaxSpanBytes &&
                         (each.end - begin) / kMaxRatio <= span_file_end - each.file_offset + 1 &&
                         each.window_bytes <= kMaxWindowBytes && each.window_at <= section.bytes &&
                         each.window_bytes <= section.bytes - each.window_at;
    if (!is_sane) return nullptr;
    spans.push_back({begin,
                     each.end,
                     {each.file_offset, static_cast<unsigned>(each.bits)},
                     each.crc,
                     each.file_crc,
                     {bytes->at(section.at + each.window_at), each.window_bytes},
                     each.window_crc});
    begin = each.end;
    file_begin = each.file_offset;
  }
  if (begin != facts.stream_bytes) return nullptr;
  return SeekPoints::of(std::move(spans), header.file_end, bytes);
}

}  // namespace tfrfast
