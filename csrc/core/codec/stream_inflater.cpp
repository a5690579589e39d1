#include "core/codec/stream_inflater.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/bytes.h"

namespace tfrfast {
namespace {

constexpr std::size_t kInputBytes = 64 << 10;
// read() stops after this much input, even without output. Empty members, empty blocks and padding
// may go on for the whole file, and the caller may want to stop.
constexpr std::uint64_t kMaxInputBytes = 1 << 20;

}  // namespace

StreamInflater::StreamInflater(std::shared_ptr<const StoredFile> file, Compression compression,
                               Inflater::Kind kind, Checks checks)
    : file_(std::move(file)),
      codec_(codec_of(compression)),
      checks_(checks == Checks::members),
      inflater_(make_inflater(kind)),
      kind_(inflater_->kind()),
      end_of_file_(file_->bytes()),
      buffer_(kInputBytes) {}

void StreamInflater::begin(std::uint64_t member_offset) {
  buffer_end_ = member_offset;
  ahead_ = {};
  end_ = StreamEnd::none;
  padding_begin_.reset();
  verified_members_ = 0;
  if (inflater_->kind() != kind_) inflater_ = make_inflater(kind_);
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

void StreamInflater::repeat_with_zlib(const Mark& mark, std::span<const std::uint8_t> window) {
  inflater_ = make_inflater(Inflater::Kind::zlib);
  begin_at(mark.place, window);
  member_bytes_ = mark.member_bytes;
  checksum_ = mark.checksum;
  whole_member_ = mark.whole_member;
}

bool StreamInflater::fill() {
  std::uint64_t left = end_of_file_ - buffer_end_;
  if (buffer_end_ < expected_end_) left = std::min(left, expected_end_ - buffer_end_);
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kInputBytes, left));
  if (count == 0) return false;
  file_->read(buffer_end_, buffer_.data(), count);
  buffer_end_ += count;
  ahead_ = {buffer_.data(), count};
  return true;
}

std::span<const std::uint8_t> StreamInflater::peek(std::size_t count) {
  if (ahead_.size() < count) {
    const std::size_t kept = ahead_.size();
    const auto more = static_cast<std::size_t>(
        std::min<std::uint64_t>(kInputBytes - kept, end_of_file_ - buffer_end_));
    if (kept > 0) std::memmove(buffer_.data(), ahead_.data(), kept);
    ahead_ = {buffer_.data(), kept};
    file_->read(buffer_end_, buffer_.data() + kept, more);
    buffer_end_ += more;
    ahead_ = {buffer_.data(), kept + more};
  }
  return ahead_.first(std::min(count, ahead_.size()));
}

void StreamInflater::consume(std::ptrdiff_t count) {
  if (count < 0) {
    buffer_end_ = file_offset() - static_cast<std::uint64_t>(-count);
    ahead_ = {};
  } else {
    ahead_ = ahead_.subspan(static_cast<std::size_t>(count));
  }
}

// False if the file ends first. Then the stream is truncated.
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
  const std::uint64_t input_end = file_offset() + kMaxInputBytes;
  while (end_ == StreamEnd::none && done < out.size() && file_offset() < input_end) {
    if (between_members_) {
      if (skip_padding(input_end)) open_member();
      break;
    }
    // Output may be pending although no input is left.
    const bool has_input = !ahead_.empty() || fill();
    const Inflater::Inflated step = inflater_->step(ahead_, out.subspan(done), stop_at_block_ends);
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
  checksum_ = codec_.add_to_checksum(checksum_, produced);
}

// Zeros up to the file's end are padding. Anything else after zeros means a lost member. Returns
// true if a member should begin here, false if a member was lost or more zeros may follow `limit`.
bool StreamInflater::skip_padding(std::uint64_t limit) {
  if (!codec_.zeros_are_padding) return true;
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
  if (!read_header()) {
    if (end_ == StreamEnd::none) end_ = StreamEnd::corrupt;
    return;
  }
  between_members_ = false;
  at_boundary_ = true;
  bits_ = 0;
  whole_member_ = true;
  member_bytes_ = 0;
  checksum_ = codec_.first_checksum;
  inflater_->begin();
}

bool StreamInflater::read_header() {
  header_.clear();
  return codec_.read_header(header_, [this](std::size_t count) {
    const std::size_t had = header_.size();
    header_.resize(had + count);
    return take(header_.data() + had, count);
  });
}

void StreamInflater::close_member() {
  std::uint8_t trailer[kMaxTrailerBytes] = {};
  if (!take(trailer, codec_.trailer_bytes)) return;
  between_members_ = true;
  if (!checks_ || !whole_member_) return;
  if (codec_.trailer_holds(trailer, checksum_, member_bytes_)) {
    ++verified_members_;
  } else {
    end_ = StreamEnd::corrupt;
  }
}

}  // namespace tfrfast
