#include "core/write/shuffle_buckets.h"

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/in_place.h"
#include "core/storage/stored_file.h"

namespace tfrfast {
namespace {

constexpr std::size_t kKeysAtOnce = 1024;
constexpr std::size_t kMemoryPieceBytes = std::size_t{4} << 20;
constexpr std::size_t kNumberBytes = sizeof(std::uint64_t);

}  // namespace

ShuffledBucket::ShuffledBucket(std::vector<FrameBuffer> frames, std::uint64_t seed,
                               const std::string& origin)
    : frames_(std::move(frames)) {
  std::vector<std::int64_t> numbers;
  for (const FrameBuffer& piece : frames_) {
    const std::span<const std::uint8_t> bytes = piece.bytes();
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t left = bytes.size() - at;
      const std::uint8_t* frame = bytes.data() + at;
      const FrameHeader header = left < kFrameOverhead ? FrameHeader{} : decode_header(frame);
      const auto payload_bytes = static_cast<std::size_t>(header.payload_bytes);
      const std::uint8_t* payload = frame + kHeaderBytes;
      if (left < kFrameOverhead + kNumberBytes || !header_is_intact(header) ||
          payload_bytes < kNumberBytes || payload_bytes > left - kFrameOverhead ||
          decode_footer(payload + payload_bytes) != masked_crc32c(payload, payload_bytes)) {
        throw Error(ErrorKind::corrupt,
                    "The intermediate file '" + origin + "' is damaged at byte " +
                        std::to_string(at) + ". Remove its folder and begin the shuffle again.",
                    {origin, {}, static_cast<std::int64_t>(at)});
      }
      numbers.push_back(static_cast<std::int64_t>(load_little_endian<std::uint64_t>(payload)));
      entries_.push_back({0, frame});
      at += payload_bytes + kFrameOverhead;
    }
  }
  Permutation(kShuffleKeys, seed, 0).evaluate(numbers.data(), numbers.size(), numbers.data());
  for (std::size_t row = 0; row < numbers.size(); ++row) entries_[row].key = numbers[row];
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.key < b.key; });
}

std::span<const std::uint8_t> ShuffledBucket::operator[](std::size_t row) const noexcept {
  const std::uint8_t* frame = entries_[row].frame;
  return {frame + kHeaderBytes + kNumberBytes,
          static_cast<std::size_t>(decode_header(frame).payload_bytes) - kNumberBytes};
}

ShuffleBuckets::ShuffleBuckets(const Options& options)
    : ShuffleBuckets(options, {{},
                               std::vector<std::uint64_t>(options.bucket_count),
                               std::vector<std::uint64_t>(options.bucket_count)}) {}

ShuffleBuckets::ShuffleBuckets(const Options& options, State state)
    : options_(options),
      keys_(kShuffleKeys, options.seed, 0),
      state_(std::move(state)),
      upcoming_(kKeysAtOnce),
      upcoming_used_(kKeysAtOnce) {
  if (options_.folder.empty()) {
    options_.bucket_count = 1;
    return;
  }
  buffers_.resize(options_.bucket_count);
  for (std::size_t bucket = 0; bucket < options_.bucket_count; ++bucket) {
    const std::string path = bucket_path(bucket);
    const std::uint64_t expected = state_.bucket_bytes[bucket];
    const NameStatus found = look_at(path);
    const bool there = found.kind != NameKind::nothing;
    if (expected == 0 && !there) continue;
    if (!there || found.bytes < expected) {
      throw Error(ErrorKind::truncated,
                  "The intermediate file '" + path + "' should have " + std::to_string(expected) +
                      " bytes and has fewer. Remove its folder and begin the shuffle "
                      "again.",
                  {path, {}, {}});
    }
    cut_file(path, expected);
  }
}

void ShuffleBuckets::add(std::span<const std::uint8_t> payload) {
  std::uint8_t number[kNumberBytes];
  store_little_endian(number, state_.totals.record_count);
  if (options_.folder.empty()) {
    add_in_memory(number, payload);
  } else {
    const std::size_t bucket = next_bucket();
    FrameBuffer& buffer = buffers_[bucket];
    const std::size_t frame_payload_bytes = kNumberBytes + payload.size();
    if (!buffer.allocated()) buffer.allocate(options_.buffer_bytes);
    if (!buffer.has_space(frame_payload_bytes)) {
      append(bucket, buffer.bytes());
      buffer.clear();
    }
    if (buffer.has_space(frame_payload_bytes)) {
      buffer.put_frame(number, payload);
    } else {
      FrameBuffer alone;
      alone.allocate(frame_payload_bytes + kFrameOverhead);
      alone.put_frame(number, payload);
      append(bucket, alone.bytes());
    }
    ++state_.bucket_records[bucket];
  }
  state_.totals.add(payload);
}

void ShuffleBuckets::add_in_memory(std::span<const std::uint8_t> number,
                                   std::span<const std::uint8_t> payload) {
  const std::size_t bytes = number.size() + payload.size();
  if (buffers_.empty() || !buffers_.back().has_space(bytes)) {
    buffers_.emplace_back().allocate(std::max(kMemoryPieceBytes, bytes + kFrameOverhead));
  }
  buffers_.back().put_frame(number, payload);
  ++state_.bucket_records[0];
}

std::size_t ShuffleBuckets::next_bucket() {
  if (upcoming_used_ == upcoming_.size()) {
    keys_.evaluate_range(static_cast<std::int64_t>(state_.totals.record_count), upcoming_.size(),
                         upcoming_.data());
    upcoming_used_ = 0;
  }
  // The bucket's number ascends with the key, so sorted buckets, end to end, are sorted records.
  static_assert(kShuffleKeys == std::int64_t{1} << 62);
  __extension__ const auto product =
      static_cast<unsigned __int128>(upcoming_[upcoming_used_++]) * options_.bucket_count;
  return static_cast<std::size_t>(product >> 62);
}

void ShuffleBuckets::write_out() {
  for (std::size_t bucket = 0; bucket < buffers_.size() && !options_.folder.empty(); ++bucket) {
    if (buffers_[bucket].bytes().empty()) continue;
    append(bucket, buffers_[bucket].bytes());
    buffers_[bucket].clear();
  }
}

void ShuffleBuckets::append(std::size_t bucket, std::span<const std::uint8_t> frames) {
  // Opened for each write, because there may be more buckets than the system allows open files.
  const std::string advice = "The same call goes on where it stopped.";
  GrowingFile file(bucket_path(bucket));
  file.append(frames, advice);
  file.close(advice);
  state_.bucket_bytes[bucket] += frames.size();
}

ShuffledBucket ShuffleBuckets::take(std::size_t bucket) {
  if (options_.folder.empty()) {
    return {std::exchange(buffers_, {}), options_.seed, "memory"};
  }
  write_out();
  for (FrameBuffer& buffer : buffers_) buffer.release();
  const std::string path = bucket_path(bucket);
  const auto bytes = static_cast<std::size_t>(state_.bucket_bytes[bucket]);
  std::vector<FrameBuffer> frames;
  if (bytes > 0) {
    const auto file = StoredFile::open(path, IoMode::pread);
    frames.emplace_back().fill(bytes, [&](std::uint8_t* out) { file->read(0, out, bytes); });
  }
  ShuffledBucket sorted(std::move(frames), options_.seed, path);
  if (sorted.size() != state_.bucket_records[bucket]) {
    throw Error(ErrorKind::corrupt,
                "The intermediate file '" + path + "' has " + std::to_string(sorted.size()) +
                    " records instead of " + std::to_string(state_.bucket_records[bucket]) +
                    ". Remove its folder and begin the shuffle again.",
                {path, {}, {}});
  }
  return sorted;
}

void ShuffleBuckets::remove(std::size_t bucket) noexcept {
  if (!options_.folder.empty()) remove_file(bucket_path(bucket));
}

std::string ShuffleBuckets::bucket_path(std::size_t bucket) const {
  return options_.folder + "/bucket-" + std::to_string(bucket);
}

}  // namespace tfrfast
