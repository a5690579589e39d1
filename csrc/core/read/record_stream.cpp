#include "core/read/record_stream.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/codec/codec.h"
#include "core/codec/inflating_limits.h"
#include "core/codec/inflating_walker.h"
#include "core/shard/framing.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();

const char* const kAdvice =
    " Restore the file, or leave damaged records out with on_corruption=\"skip\".";

}  // namespace

RecordStream::RecordStream(const std::string& path, std::uint64_t offset, std::uint64_t record)
    : RecordStream(path, offset, record, Options{}) {}

RecordStream::RecordStream(const std::string& path, std::uint64_t offset, std::uint64_t record,
                           const Options& options)
    : stored_(StoredFile::open(path, IoMode::pread, options.storage)),
      ahead_(options.max_ahead_bytes),
      offset_(offset),
      record_(record) {}

void RecordStream::announce() noexcept {
  if (!stored_->traits().is_remote || offset_ > 0) return;
  // The bytes that reveal the compression are read twice.
  const std::uint64_t first_bytes =
      std::min<std::uint64_t>(stored_->bytes(), stored_->traits().request_bytes);
  const FileRange ranges[] = {{0, first_bytes},
                              {0, std::min<std::uint64_t>(stored_->bytes(), kHeaderBytes)}};
  ahead_.add(first_bytes, stored_->announce(ranges));
}

void RecordStream::begin() {
  const Compression compression = detect_compression(*stored_);
  if (compression == Compression::none) {
    walker_ = walk(stored_, std::move(ahead_));
  } else {
    walker_ = InflatingWalker::over(stored_, compression, WalkedSpans::last, AtDamage::stop,
                                    std::move(ahead_));
  }
  walker_->expect(ShardWalker::Access::everything);
  file_ = &walker_->file();
}

bool RecordStream::next(std::span<const std::uint8_t>* payload) {
  if (walker_ == nullptr) begin();
  if (!walker_->reach(offset_ + kHeaderBytes)) throw_bad_ending();
  const std::uint64_t left = file_->bytes() - std::min(offset_, file_->bytes());
  if (left == 0) return false;
  const ErrorPlace place{file_->path(), static_cast<std::int64_t>(record_),
                         static_cast<std::int64_t>(offset_)};
  if (left < kHeaderBytes) {
    throw Error(ErrorKind::truncated,
                where() + " should have a header of " + std::to_string(kHeaderBytes) +
                    " bytes, but the file ends after " + std::to_string(left) + "." + kAdvice,
                place);
  }
  const FrameHeader header = decode_header(bytes_ahead(kHeaderBytes));
  if (!header_is_intact(header)) {
    throw Error(ErrorKind::corrupt,
                where() + " has a length of " + std::to_string(header.payload_bytes) +
                    " that its CRC contradicts." + kAdvice,
                place);
  }
  const bool is_possible = header.payload_bytes <= kEndless - kFrameOverhead - offset_;
  if (!walker_->reach(is_possible ? offset_ + kFrameOverhead + header.payload_bytes : kEndless)) {
    throw_bad_ending();
    throw Error(ErrorKind::truncated,
                where() + " should have " + std::to_string(header.payload_bytes) +
                    " bytes, but the file ends " + std::to_string(file_->bytes() - offset_) +
                    " bytes after it begins." + kAdvice,
                place);
  }
  const std::uint64_t frame_bytes = header.payload_bytes + kFrameOverhead;
  if (file_ != stored_.get() && header.payload_bytes > max_inflated_record_bytes()) {
    throw Error(ErrorKind::memory,
                where() + " has " + std::to_string(header.payload_bytes) +
                    " bytes. Records of compressed shards may have " +
                    std::to_string(max_inflated_record_bytes()) +
                    " bytes. If the record is real, allow more with TFRFAST_MAX_RECORD_BYTES.",
                place);
  }
  if (frame_bytes > max_memory_bytes()) {
    throw Error(ErrorKind::memory,
                "'" + file_->path() + "' cannot be read: record " + std::to_string(record_) +
                    " at " + file_->describe_byte(offset_) + " has " +
                    std::to_string(header.payload_bytes) +
                    " bytes. That is more than memory can hold: this process may have " +
                    std::to_string(max_memory_bytes()) + " bytes in all.",
                place);
  }
  const std::uint8_t* bytes = bytes_ahead(static_cast<std::size_t>(frame_bytes)) + kHeaderBytes;
  const auto payload_bytes = static_cast<std::size_t>(header.payload_bytes);
  if (decode_footer(bytes + payload_bytes) != masked_crc32c(bytes, payload_bytes)) {
    throw Error(ErrorKind::corrupt,
                where() + " has " + std::to_string(payload_bytes) +
                    " bytes that their CRC contradicts." + kAdvice,
                place);
  }
  *payload = {bytes, payload_bytes};
  offset_ += frame_bytes;
  ++record_;
  return true;
}

const std::uint8_t* RecordStream::bytes_ahead(std::size_t count) {
  const ShardWindow window = walker_->window(offset_, count);
  return window.bytes + (offset_ - window.begin);
}

// Throws if the compressed stream ended early.
void RecordStream::throw_bad_ending() const {
  const ShardWalker::Ending ending = walker_->ending();
  if (ending == ShardWalker::Ending::clean) return;
  const bool torn = ending == ShardWalker::Ending::truncated;
  throw Error(
      torn ? ErrorKind::truncated : ErrorKind::corrupt,
      where() + " is followed by " +
          (torn ? "the end of the file, inside a compressed member"
                : "compressed data that cannot be inflated or have another checksum") +
          ", after " + file_->describe_byte(file_->bytes()) + "." + kAdvice,
      {file_->path(), static_cast<std::int64_t>(record_), static_cast<std::int64_t>(offset_)});
}

std::string RecordStream::where() const {
  return "'" + file_->path() + "' is damaged: record " + std::to_string(record_) + " at " +
         file_->describe_byte(offset_);
}

}  // namespace tfrfast
