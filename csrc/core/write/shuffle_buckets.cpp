#include "core/write/shuffle_buckets.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/base/waiting.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/writable_file.h"
#include "core/storage/stored_file.h"

namespace tfrfast {
namespace {

constexpr std::size_t kKeysAtOnce = 1024;
constexpr std::size_t kMemoryPieceBytes = std::size_t{4} << 20;
constexpr std::size_t kNumberBytes = sizeof(std::uint64_t);
constexpr std::size_t kOpenAtOnce = 64;
constexpr std::size_t kWrittenAtOnce = std::size_t{1} << 20;
constexpr std::size_t kKeysOfPart = std::size_t{1} << 16;
constexpr std::size_t kPartsAtOnce = 64;
// About as many keys are sorted as there are records, divided by this number.
constexpr std::size_t kBinsOfPlace = 1024;
constexpr std::size_t kMaxBins = std::size_t{1} << 24;

}  // namespace

ShuffledBucket::ShuffledBucket(std::vector<Piece> pieces, std::uint64_t seed)
    : pieces_(std::move(pieces)) {
  std::vector<std::int64_t> numbers;
  for (const Piece& piece : pieces_) {
    const std::span<const std::uint8_t> bytes = piece.frames.bytes();
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t left = bytes.size() - at;
      const std::uint8_t* frame = bytes.data() + at;
      const FrameHeader header = left < kFrameOverhead ? FrameHeader{} : decode_header(frame);
      const auto payload_bytes = static_cast<std::size_t>(header.payload_bytes);
      const std::uint8_t* payload = frame + kHeaderBytes;
      if (left < kFrameOverhead + kNumberBytes || !header_is_intact(header) ||
          payload_bytes < kNumberBytes || payload_bytes > left - kFrameOverhead ||
          decode_footer(payload + payload_bytes) != masked_crc32c(payload, payload_bytes)) {
        const std::uint64_t byte = piece.offset + at;
        throw Error(ErrorKind::corrupt,
                    "The intermediate file '" + piece.origin + "' is damaged at byte " +
                        std::to_string(byte) + ". Remove its folder and begin the shuffle again.",
                    {piece.origin, {}, static_cast<std::int64_t>(byte)});
      }
      numbers.push_back(static_cast<std::int64_t>(load_little_endian<std::uint64_t>(payload)));
      entries_.push_back({0, frame});
      at += payload_bytes + kFrameOverhead;
    }
  }
  Permutation(kShuffleKeys, seed, 0).evaluate(numbers.data(), numbers.size(), numbers.data());
  for (std::size_t row = 0; row < numbers.size(); ++row) entries_[row].key = numbers[row];
  std::sort(entries_.begin(), entries_.end(),
            [](const KeyedFrame& a, const KeyedFrame& b) { return a.key < b.key; });
}

ShuffledBucket ShuffledBucket::read(std::span<const Place> places, std::uint64_t seed,
                                    std::size_t record_count, const StorageOptions& storage) {
  std::vector<Piece> pieces;
  for (std::size_t first = 0; first < places.size(); first += kOpenAtOnce) {
    const auto some = places.subspan(first, std::min(kOpenAtOnce, places.size() - first));
    std::vector<std::shared_ptr<const StoredFile>> files;
    std::vector<std::unique_ptr<Announcement>> announced;
    for (const Place& place : some) {
      files.push_back(StoredFile::open(place.path, IoMode::pread, storage));
      const FileRange range{place.offset, place.bytes};
      announced.push_back(files.back()->announce({&range, 1}));
    }
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto bytes = static_cast<std::size_t>(some[i].bytes);
      Piece& piece = pieces.emplace_back(Piece{{}, some[i].path, some[i].offset});
      piece.frames.fill(bytes,
                        [&](std::uint8_t* out) { files[i]->read(some[i].offset, out, bytes); });
    }
  }
  ShuffledBucket sorted(std::move(pieces), seed);
  if (sorted.size() != record_count) {
    const std::string& path = places.empty() ? std::string() : places.front().path;
    throw Error(ErrorKind::corrupt,
                "The intermediate file '" + path + "'" +
                    (places.size() > 1 ? " and those beside it have " : " has ") +
                    std::to_string(sorted.size()) + " records instead of " +
                    std::to_string(record_count) +
                    ". Remove its folder and begin the shuffle again.",
                {path, {}, {}});
  }
  return sorted;
}

std::vector<std::uint64_t> ShuffledBucket::append_to(const std::string& path,
                                                     std::span<const std::int64_t> keys) const {
  WritableFile file(path, WritableFile::IfMissing::make);
  std::vector<std::uint64_t> cuts;
  std::vector<std::uint8_t> buffer;
  std::uint64_t bytes = 0;
  for (const auto& [key, frame] : entries_) {
    while (cuts.size() < keys.size() && key >= keys[cuts.size()]) {
      cuts.push_back(bytes);
    }
    const auto size = static_cast<std::size_t>(decode_header(frame).payload_bytes) + kFrameOverhead;
    if (buffer.size() + size > kWrittenAtOnce) {
      file.append(buffer);
      buffer.clear();
    }
    if (size > kWrittenAtOnce) {
      file.append({frame, size});
    } else {
      buffer.insert(buffer.end(), frame, frame + size);
    }
    bytes += size;
  }
  cuts.resize(keys.size(), bytes);
  file.append(buffer);
  file.close();
  return cuts;
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

ShuffleBuckets::ShuffleBuckets(const Options& options, WrittenBuckets state)
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
    WritableFile(path).cut(expected);
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
  WritableFile file(bucket_path(bucket), WritableFile::IfMissing::make,
                    "The same call goes on where it stopped.");
  file.append(frames);
  file.close();
  state_.bucket_bytes[bucket] += frames.size();
}

ShuffledBucket ShuffleBuckets::take(std::size_t bucket) {
  if (options_.folder.empty()) {
    std::vector<ShuffledBucket::Piece> pieces;
    for (FrameBuffer& buffer : buffers_) pieces.push_back({std::move(buffer), "memory"});
    buffers_.clear();
    return {std::move(pieces), options_.seed};
  }
  write_out();
  for (FrameBuffer& buffer : buffers_) buffer.release();
  const ShuffledBucket::Place place{bucket_path(bucket), 0, state_.bucket_bytes[bucket]};
  return ShuffledBucket::read({&place, place.bytes > 0 ? 1u : 0u}, options_.seed,
                              static_cast<std::size_t>(state_.bucket_records[bucket]), {});
}

void ShuffleBuckets::remove(std::size_t bucket) noexcept {
  if (!options_.folder.empty()) remove_file(bucket_path(bucket));
}

std::string ShuffleBuckets::bucket_path(std::size_t bucket) const {
  return options_.folder + "/bucket-" + std::to_string(bucket);
}

std::vector<std::int64_t> shuffle_keys_at(std::span<const std::uint64_t> places,
                                          std::uint64_t record_count, std::uint64_t seed) {
  const Permutation permutation(kShuffleKeys, seed, 0);
  const std::size_t bins =
      std::bit_ceil(std::clamp<std::size_t>(places.size() * kBinsOfPlace, 1, kMaxBins));
  const int shift = std::countr_zero(static_cast<std::uint64_t>(kShuffleKeys) / bins);
  const auto for_all_keys = [&](const auto& take) {
    for (std::uint64_t begin = 0; begin < record_count; begin += kKeysOfPart * kPartsAtOnce) {
      if (WaitCheck* const check = wait_check()) check->check();
      parallel_for(kPartsAtOnce, usable_processors(), [&](std::size_t part) {
        const std::uint64_t first = std::min(begin + part * kKeysOfPart, record_count);
        std::vector<std::int64_t> keys(std::min<std::uint64_t>(kKeysOfPart, record_count - first));
        permutation.evaluate_range(static_cast<std::int64_t>(first), keys.size(), keys.data());
        take(keys);
      });
    }
  };
  std::vector<std::atomic<std::uint64_t>> counts(bins);
  for_all_keys([&](const std::vector<std::int64_t>& keys) {
    for (const std::int64_t key : keys) {
      counts[static_cast<std::size_t>(key >> shift)].fetch_add(1, std::memory_order_relaxed);
    }
  });
  // The bin of each place, and the number of records before each wanted bin.
  std::vector<std::size_t> bin_of;
  std::map<std::size_t, std::pair<std::uint64_t, std::vector<std::int64_t>>> wanted;
  std::size_t bin = 0;
  std::uint64_t before = 0;
  for (const std::uint64_t place : places) {
    while (bin < bins && before + counts[bin] <= place) before += counts[bin++];
    bin_of.push_back(bin);
    if (bin < bins) wanted[bin].first = before;
  }
  std::vector<bool> is_wanted(bins);
  for (const auto& [number, _] : wanted) is_wanted[number] = true;
  std::mutex mutex;
  for_all_keys([&](const std::vector<std::int64_t>& keys) {
    std::vector<std::int64_t> mine;
    for (const std::int64_t key : keys) {
      if (is_wanted[static_cast<std::size_t>(key >> shift)]) mine.push_back(key);
    }
    const std::lock_guard lock(mutex);
    for (const std::int64_t key : mine) {
      wanted[static_cast<std::size_t>(key >> shift)].second.push_back(key);
    }
  });
  for (auto& [_, held] : wanted) std::sort(held.second.begin(), held.second.end());
  std::vector<std::int64_t> keys;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (bin_of[i] == bins) {
      keys.push_back(kShuffleKeys);
    } else {
      const auto& [first, held] = wanted[bin_of[i]];
      keys.push_back(held[static_cast<std::size_t>(places[i] - first)]);
    }
  }
  return keys;
}

}  // namespace tfrfast
