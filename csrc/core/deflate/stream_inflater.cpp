#include "core/deflate/stream_inflater.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/bytes.h"
#include "core/deflate/zlib.h"

namespace tfrfast {
namespace {

constexpr std::size_t kInputBytes = 64 << 10;
// Members and blocks may be empty, and padding has no end: whoever reads gets a look in between.
constexpr std::uint64_t kMostInputBytes = 1 << 20;
// Of a member's name, or of its comment: more than a path can have.
constexpr std::size_t kMostTextBytes = 64 << 10;

// A GZIP header's flags.
constexpr unsigned kHasHeaderCrc = 2, kHasExtra = 4, kHasName = 8, kHasComment = 16,
                   kReservedFlags = 0xe0;

std::uint32_t big_endian_at(const std::uint8_t* bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | bytes[i];
  return value;
}

}  // namespace

StreamInflater::StreamInflater(std::shared_ptr<const StoredFile> file, Compression compression,
                               Mode mode)
    : file_(std::move(file)),
      compression_(compression),
      checks_(mode == Mode::survey),
      inflater_(mode == Mode::survey ? make_zlib_inflater() : make_fast_inflater()),
      end_of_file_(file_->bytes()),
      buffer_(kInputBytes) {}

void StreamInflater::begin(std::uint64_t member_offset) {
  buffer_end_ = member_offset;
  ahead_ = {};
  end_ = StreamEnd::none;
  padding_begin_.reset();
  verified_members_ = 0;
  open_member();
}

void StreamInflater::begin_at(const InflatePlace& place, std::span<const std::uint8_t> window) {
  buffer_end_ = place.file_offset - (place.bits > 0 ? 1 : 0);
  ahead_ = {};
  end_ = StreamEnd::none;
  padding_begin_.reset();
  between_members_ = false;
  whole_member_ = false;
  member_bytes_ = 0;
  std::uint8_t before = 0;
  if (place.bits > 0 && !take(&before, 1)) return;
  inflater_->begin(place.bits, place.bits > 0 ? before >> (8 - place.bits) : 0u, window);
}

bool StreamInflater::fill() {
  const auto count =
      static_cast<std::size_t>(std::min<std::uint64_t>(kInputBytes, end_of_file_ - buffer_end_));
  if (count == 0) return false;
  file_->read(buffer_end_, buffer_.data(), count);
  buffer_end_ += count;
  ahead_ = {buffer_.data(), count};
  return true;
}

void StreamInflater::consume(std::ptrdiff_t count) {
  if (count < 0) {
    buffer_end_ = file_offset() - static_cast<std::uint64_t>(-count);
    ahead_ = {};
  } else {
    ahead_ = ahead_.subspan(static_cast<std::size_t>(count));
  }
}

// False, and the stream's end, where the file has fewer bytes.
bool StreamInflater::take(std::uint8_t* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (ahead_.empty() && !fill()) {
      end_ = StreamEnd::truncated;
      return false;
    }
    bytes[i] = ahead_.front();
    ahead_ = ahead_.subspan(1);
  }
  return true;
}

std::size_t StreamInflater::read(std::span<std::uint8_t> out, bool stop_at_block_ends) {
  std::size_t done = 0;
  at_boundary_ = false;
  const std::uint64_t input_end = file_offset() + kMostInputBytes;
  while (end_ == StreamEnd::none && done < out.size() && file_offset() < input_end) {
    if (between_members_) {
      if (skip_padding(input_end)) open_member();
      break;
    }
    // Without input left, output may still be pending.
    const bool has_input = !ahead_.empty() || fill();
    const Inflater::Step step = inflater_->step(ahead_, out.subspan(done), stop_at_block_ends);
    consume(step.consumed);
    check(out.subspan(done, step.produced));
    done += step.produced;
    member_bytes_ += step.produced;
    at_boundary_ = step.stop == Inflater::Stop::block_end;
    bits_ = step.unused_bits;
    if (step.stop == Inflater::Stop::corrupt) end_ = StreamEnd::corrupt;
    if (step.stop == Inflater::Stop::needs_input) {
      if (!has_input) end_ = StreamEnd::truncated;
      if (has_input && step.consumed == 0 && step.produced == 0) end_ = StreamEnd::corrupt;
    }
    if (step.stop == Inflater::Stop::stream_end) close_member();
    if (at_boundary_) break;
  }
  return done;
}

void StreamInflater::check(std::span<const std::uint8_t> produced) {
  if (!checks_ || produced.empty()) return;
  const auto sum = compression_ == Compression::gzip ? zlib().crc32 : zlib().adler32;
  checksum_ = sum(checksum_, produced.data(), static_cast<unsigned>(produced.size()));
}

// Zeros up to the file's end are padding. Before anything else they are where a member was lost.
// True if a member should begin here; false after that, or if there may be more beyond `limit`.
bool StreamInflater::skip_padding(std::uint64_t limit) {
  if (compression_ != Compression::gzip) return true;
  if (!padding_begin_) padding_begin_ = file_offset();
  while (ahead_.empty() ? fill() : ahead_.front() == 0) {
    const std::uint8_t* const end = ahead_.data() + ahead_.size();
    ahead_ = {skip_zeros(ahead_.data(), end), end};
    if (!ahead_.empty() || file_offset() < limit) continue;
    buffer_end_ = std::min(file_->next_data(buffer_end_), end_of_file_);
    return false;
  }
  const std::uint64_t begin = *std::exchange(padding_begin_, std::nullopt);
  if (ahead_.empty() || begin == file_offset()) return true;
  member_offset_ = begin;
  end_ = StreamEnd::corrupt;
  return false;
}

void StreamInflater::open_member() {
  if (ahead_.empty() && !fill()) {
    end_ = StreamEnd::clean;
    return;
  }
  member_offset_ = file_offset();
  const bool opened = compression_ == Compression::gzip ? open_gzip_member() : open_zlib_member();
  if (!opened) {
    if (end_ == StreamEnd::none) end_ = StreamEnd::corrupt;
    return;
  }
  between_members_ = false;
  at_boundary_ = true;
  bits_ = 0;
  whole_member_ = true;
  member_bytes_ = 0;
  checksum_ = compression_ == Compression::gzip ? 0 : 1;
  inflater_->begin();
}

bool StreamInflater::open_gzip_member() {
  std::string header;
  const auto more = [&](std::size_t count) {
    std::uint8_t byte = 0;
    for (; count > 0; --count) {
      if (!take(&byte, 1)) return false;
      header.push_back(static_cast<char>(byte));
    }
    return true;
  };
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(header[i]); };
  const auto skip_text = [&] {
    for (std::size_t bytes = 0; bytes < kMostTextBytes; ++bytes) {
      if (!more(1)) return false;
      if (header.back() == '\0') return true;
    }
    return false;
  };
  // Byte by byte: what is no header may be shorter than one.
  if (!more(1) || at(0) != 0x1f || !more(1) || at(1) != 0x8b || !more(1) || at(2) != 8)
    return false;
  if (!more(7) || (at(3) & kReservedFlags) != 0) return false;
  const unsigned flags = at(3);
  if ((flags & kHasExtra) != 0) {
    if (!more(2)) return false;
    if (!more(at(header.size() - 2) + 256u * at(header.size() - 1))) return false;
  }
  if ((flags & kHasName) != 0 && !skip_text()) return false;
  if ((flags & kHasComment) != 0 && !skip_text()) return false;
  if ((flags & kHasHeaderCrc) != 0) {
    const unsigned long crc = zlib().crc32(0, reinterpret_cast<const std::uint8_t*>(header.data()),
                                           static_cast<unsigned>(header.size()));
    if (!more(2)) return false;
    return (crc & 0xffff) == at(header.size() - 2) + 256u * at(header.size() - 1);
  }
  return true;
}

bool StreamInflater::open_zlib_member() {
  std::uint8_t header[2];
  if (!take(header, 1) || (header[0] & 0x0f) != 8 || (header[0] >> 4) > 7) return false;
  constexpr unsigned kPresetDictionary = 0x20;
  return take(header + 1, 1) && (header[0] * 256u + header[1]) % 31 == 0 &&
         (header[1] & kPresetDictionary) == 0;
}

void StreamInflater::close_member() {
  std::uint8_t trailer[8] = {};
  const bool is_gzip = compression_ == Compression::gzip;
  if (!take(trailer, is_gzip ? 8 : 4)) return;
  between_members_ = true;
  if (!checks_ || !whole_member_) return;
  const bool holds = is_gzip ? load_little_endian<std::uint32_t>(trailer) == checksum_ &&
                                   load_little_endian<std::uint32_t>(trailer + 4) ==
                                       static_cast<std::uint32_t>(member_bytes_)
                             : big_endian_at(trailer) == checksum_;
  if (holds) {
    ++verified_members_;
  } else {
    end_ = StreamEnd::corrupt;
  }
}

}  // namespace tfrfast
