#include "core/read/frame_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>

#include "core/crc32c/crc32c.h"
#include "core/read/bad_row.h"
#include "core/storage/fault_guard.h"

namespace tfrfast {
namespace {

// A piece is copied, then verified while the copy is still in the cache.
constexpr std::size_t kPieceBytes = 64 << 10;
constexpr std::size_t kPieceRows = 256;
constexpr std::size_t kFramesBytes = kPieceBytes + kPieceRows * kFrameOverhead;
// A frame is prefetched this many rows ahead, but only its first bytes. Prefetching while other
// frames are decoded was slower: a prefetch waits for the same address translation as the read.
constexpr std::size_t kPrefetchRows = 8;
constexpr std::size_t kPrefetchBytes = 512;
constexpr std::size_t kCacheLine = 64;
// A batch of this size does not stay in the caches until it is used. In such a batch, records of
// this size are written past the caches, which saves a quarter of the time. Records of 3 KB would
// take twice the time, because each begins and ends within a cache line.
constexpr std::size_t kMinStreamedBatch = std::size_t{8} << 20;
constexpr std::size_t kMinStreamedRecord = std::size_t{16} << 10;

// Records of these sizes are checked after the whole piece has been copied, which is a fifth faster
// than both at once. Shorter and longer records are checked as they are copied.
constexpr std::size_t kMinCheckedLater = std::size_t{2} << 10;
constexpr std::size_t kMaxCheckedLater = std::size_t{16} << 10;

bool is_checked_later(std::size_t payload_bytes) noexcept {
  return payload_bytes >= kMinCheckedLater && payload_bytes < kMaxCheckedLater;
}

// Remembers the CRC of the last length: many records have the same size.
class HeaderCheck {
 public:
  Verdict operator()(const Row& row, const Seal& seal) {
    const FrameHeader header = decode_header(seal.header);
    if (header.payload_bytes != length_) {
      length_ = header.payload_bytes;
      length_crc_ = mask_crc(crc32c_u64(length_));
    }
    if (header.length_crc != length_crc_) return Verdict::bad_header;
    return length_ == row.frame.payload_bytes ? Verdict::good : Verdict::other_length;
  }

 private:
  std::uint64_t length_ = 0;
  MaskedCrc length_crc_ = mask_crc(crc32c_u64(0));
};

// Where a piece's payloads go, and what else is asked of them.
struct Destination {
  std::uint8_t* data;
  const std::int64_t* offsets;  // in `data`, of each row
  bool takes_crcs;
  bool streams;  // writes long payloads past the caches
};

// What was taken of a piece of rows.
struct CheckedPiece {
  std::array<Seal, kPieceRows> seals;
  std::array<MaskedCrc, kPieceRows> crcs;  // undefined unless wanted
};

void take(const std::uint8_t* frame, const Row& row, std::size_t i, const Destination& destination,
          CheckedPiece& taken) noexcept {
  const auto payload_bytes = static_cast<std::size_t>(row.frame.payload_bytes);
  const std::uint8_t* const payload = frame + kHeaderBytes;
  std::memcpy(taken.seals[i].header, frame, kHeaderBytes);
  std::uint8_t* const out = destination.data + destination.offsets[i];
  if (!destination.takes_crcs || is_checked_later(payload_bytes)) {
    std::memcpy(out, payload, payload_bytes);
  } else if (destination.streams && payload_bytes >= kMinStreamedRecord) {
    taken.crcs[i] = mask_crc(stream_crc32c(out, payload, payload_bytes));
  } else {
    taken.crcs[i] = mask_crc(copy_crc32c(out, payload, payload_bytes));
  }
  std::memcpy(taken.seals[i].footer, payload + payload_bytes, kFooterBytes);
}

// Computes the checksums that take() has left.
void check_later(std::span<const Row> rows, const Destination& destination,
                 CheckedPiece& taken) noexcept {
  if (!destination.takes_crcs) return;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto payload_bytes = static_cast<std::size_t>(rows[i].frame.payload_bytes);
    if (is_checked_later(payload_bytes)) {
      taken.crcs[i] = masked_crc32c(destination.data + destination.offsets[i], payload_bytes);
    }
  }
}

// Takes a piece of rows of mapped shards. False if a mapping could not be read.
bool take_mapped(std::span<const Row> rows, std::size_t rows_after, const Destination& destination,
                 CheckedPiece& taken) noexcept {
  const Row* const row = rows.data();
  const std::size_t count = rows.size();
  return run_guarded([=, &destination, &taken] {
    for (std::size_t i = 0; i < count; ++i) {
      if (i + kPrefetchRows < count + rows_after) {
        const Row& ahead = row[i + kPrefetchRows];
        if (const std::uint8_t* mapping = ahead.shard->file->mapping(); mapping != nullptr) {
          const std::uint8_t* frame = mapping + ahead.frame.offset;
          const std::size_t lines =
              std::min<std::uint64_t>(ahead.frame.payload_bytes + kFrameOverhead, kPrefetchBytes);
          for (std::size_t line = 0; line < lines; line += kCacheLine) {
            __builtin_prefetch(frame + line);
          }
        }
      }
      take(row[i].shard->file->mapping() + row[i].frame.offset, row[i], i, destination, taken);
    }
    check_later({row, count}, destination, taken);
  });
}

// Reads a piece of rows of one shard in one call, and takes the rows. Rows that lie side by side
// are one range: a range for each row would cost the system more than the copy costs here.
// `frames` has space for kFramesBytes.
void take_read(std::span<const Row> rows, std::uint8_t* frames, const Destination& destination,
               CheckedPiece& taken) {
  std::array<ReadRange, kPieceRows> ranges;
  std::size_t count = 0;
  std::uint8_t* out = frames;
  for (const Row& row : rows) {
    const auto bytes = static_cast<std::size_t>(row.frame.payload_bytes + kFrameOverhead);
    if (count > 0 && ranges[count - 1].offset + ranges[count - 1].bytes == row.frame.offset) {
      ranges[count - 1].bytes += bytes;
    } else {
      ranges[count++] = {row.frame.offset, out, bytes};
    }
    out += bytes;
  }
  rows[0].shard->file->read(std::span(ranges).first(count));
  const std::uint8_t* frame = frames;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    take(frame, rows[i], i, destination, taken);
    frame += rows[i].frame.payload_bytes + kFrameOverhead;
  }
  check_later(rows, destination, taken);
}

// Returns the number of rows in the next piece: rows of mapped shards, rows of one shard that is
// read, or a single long row.
std::size_t piece_size(std::span<const Row> rows, bool mapped) {
  std::uint64_t bytes = rows[0].frame.payload_bytes;
  std::size_t count = 1;
  for (; count < std::min(rows.size(), kPieceRows); ++count) {
    const Row& row = rows[count];
    if (mapped ? row.shard->file->mapping() == nullptr : row.shard != rows[0].shard) break;
    if (row.frame.payload_bytes > kPieceBytes || bytes > kPieceBytes - row.frame.payload_bytes)
      break;
    bytes += row.frame.payload_bytes;
  }
  return count;
}

// Reads a payload that is longer than a piece and not mapped. Reading and checksumming alternate.
MaskedCrc read_long_payload(const Row& row, Verify verify, std::uint8_t* out, Seal* seal) {
  const StoredFile& file = *row.shard->file;
  const std::size_t max_piece_bytes =
      file.traits().is_remote ? file.traits().request_bytes : 8 * kPieceBytes;
  std::uint64_t at = row.frame.offset;
  std::uint64_t left = row.frame.payload_bytes;
  std::uint32_t crc = 0;
  // Each piece costs a system call, or a round trip. So the header is read with the first piece,
  // and the footer with the last.
  std::uint64_t header_bytes = kHeaderBytes;
  do {
    const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(left, max_piece_bytes));
    const std::uint64_t payload = at + header_bytes;
    const ReadRange ranges[] = {
        {at, seal->header, static_cast<std::size_t>(header_bytes)},
        {payload, out, piece},
        {payload + piece, seal->footer, piece == left ? kFooterBytes : 0},
    };
    const bool is_first = header_bytes != 0;
    const bool is_last = piece == left;
    file.read(std::span(ranges).subspan(is_first ? 0 : 1, 1 + is_first + is_last));
    if (verify == Verify::full) crc = crc32c(out, piece, crc);
    at = payload + piece, out += piece, left -= piece;
    header_bytes = 0;
  } while (left > 0);
  return mask_crc(crc);
}

class FrameReading {
 public:
  // Copies row i to data[offsets[i]]. Errors number row i first_row + i or, with `batch_rows`,
  // batch_rows[i].
  FrameReading(std::span<const Row> rows, Verify verify, AtBadRow at_bad_row, std::uint8_t* data,
               const std::int64_t* offsets, std::size_t first_row,
               const std::size_t* batch_rows = nullptr, SkipAdvice advice = SkipAdvice::try_it,
               bool streams = false)
      : rows_(rows),
        verify_(verify),
        at_bad_row_(at_bad_row),
        data_(data),
        offsets_(offsets),
        first_row_(first_row),
        batch_rows_(batch_rows),
        advice_(advice),
        streams_(streams) {}

  std::vector<BadRow> run() {
    for (std::size_t done = 0; done < rows_.size() && !stopped();) {
      const bool mapped = is_mapped(*rows_[done].shard->file);
      const std::size_t count = piece_size(rows_.subspan(done), mapped);
      read_piece(done, count, mapped);
      done += count;
    }
    if (gave_up_ && at_bad_row_ == AtBadRow::go_on) {
      const ErrorKind kind = bad_.back().error.kind();
      for (; tried_rows_ < rows_.size(); ++tried_rows_) {
        bad_.push_back({batch_row(tried_rows_), Error(kind, ""), false, true});
      }
    }
    return std::move(bad_);
  }

 private:
  std::size_t batch_row(std::size_t i) const {
    return batch_rows_ == nullptr ? first_row_ + i : batch_rows_[i];
  }

  bool stopped() const { return gave_up_ || (at_bad_row_ == AtBadRow::stop && !bad_.empty()); }

  // Whether to take rows from the file's mapping.
  bool is_mapped(const StoredFile& file) const {
    // The mapped copy may be damaged for good. read() also tries other sources.
    return file.mapping() != nullptr && !is_mended_ && !file.is_better_read();
  }

  void read_piece(std::size_t first, std::size_t count, bool mapped) {
    if (mapped) {
      read_mapped(first, count);
    } else if (rows_[first].frame.payload_bytes > kPieceBytes) {
      read_long(first);
    } else {
      read_run(first, count);
    }
  }

  void read_mapped(std::size_t first, std::size_t count) {
    const std::span<const Row> piece = rows_.subspan(first, count);
    CheckedPiece taken;
    if (!take_mapped(piece, rows_.size() - first - count, destination(first), taken)) {
      return explain_fault(first, count);
    }
    judge(first, count, taken);
  }

  Destination destination(std::size_t first) const {
    return {data_, offsets_ + first, verify_ == Verify::full, streams_};
  }

  void read_run(std::size_t first, std::size_t count) {
    CheckedPiece taken;
    // Not on the stack, which has 128 KiB in the threads of some systems.
    if (frames_ == nullptr) frames_.reset(new std::uint8_t[kFramesBytes]);
    try {
      take_read(rows_.subspan(first, count), frames_.get(), destination(first), taken);
    } catch (const Error& error) {
      if (rows_[first].shard->file->traits().is_remote) return fail_remote(first, count, error);
      return fail_singly(first, count, error, false);
    }
    judge(first, count, taken);
  }

  void read_long(std::size_t i) {
    Seal seal;
    try {
      const MaskedCrc crc = read_long_payload(rows_[i], verify_, data_ + offsets_[i], &seal);
      judge(i, seal, verify_ == Verify::full ? std::optional(crc) : std::nullopt);
    } catch (const Error& error) {
      if (rows_[i].shard->file->traits().is_remote) return fail_remote(i, 1, error);
      bad_.push_back({batch_row(i), error, false});
    }
  }

  // Reports a failure that has outlasted many attempts. Trying each row would take as long again
  // for every row. So the row at the place of the failure gets the error, and no later row is read.
  void fail_remote(std::size_t first, std::size_t count, const Error& error) {
    std::size_t failed = first;
    if (error.place().offset && !rows_[first].shard->file->is_inflated()) {
      const auto at = static_cast<std::uint64_t>(*error.place().offset);
      for (std::size_t i = first; i < first + count; ++i) {
        const Frame& frame = rows_[i].frame;
        if (frame.offset <= at && at - frame.offset < frame.payload_bytes + kFrameOverhead) {
          failed = i;
          break;
        }
      }
    }
    if (failed > first) read_run(first, failed - first);
    if (stopped()) return;
    ErrorPlace place{rows_[failed].shard->file->path(),
                     static_cast<std::int64_t>(rows_[failed].number),
                     static_cast<std::int64_t>(rows_[failed].frame.offset)};
    bad_.push_back(
        {batch_row(failed),
         Error(error.kind(), "Reading " + describe(rows_[failed]) + ": " + error.message(),
               std::move(place), error.system_error()),
         false});
    gave_up_ = true;
    tried_rows_ = failed + 1;
  }

  void explain_fault(std::size_t first, std::size_t count) {
    if (count == 1 && mend(first)) return read_again(first);
    try {
      throw_mapping_fault(*rows_[first].shard->file, rows_[first].frame.offset);
    } catch (const Error& error) {
      fail_singly(first, count, error, true);
    }
  }

  // Mends the local copy of a shard, which may be damaged while the shard is intact.
  bool mend(std::size_t i) const {
    const Row& row = rows_[i];
    return !is_mended_ &&
           row.shard->file->mend({row.frame.offset, row.frame.payload_bytes + kFrameOverhead});
  }

  void read_again(std::size_t i) {
    is_mended_ = true;
    read_piece(i, 1, is_mapped(*rows_[i].shard->file));
    is_mended_ = false;
  }

  // After a failure among many rows, reads the rows one by one to find the failed row.
  void fail_singly(std::size_t first, std::size_t count, const Error& error, bool mapped) {
    if (count == 1) {
      bad_.push_back({batch_row(first), error, false});
      return;
    }
    for (std::size_t i = first; i < first + count && !stopped(); ++i) read_piece(i, 1, mapped);
  }

  void judge(std::size_t first, std::size_t count, const CheckedPiece& taken) {
    const bool has_crcs = verify_ == Verify::full;
    for (std::size_t i = 0; i < count && !stopped(); ++i) {
      judge(first + i, taken.seals[i], has_crcs ? std::optional(taken.crcs[i]) : std::nullopt);
    }
  }

  // After the end of a truncated file, a mapping shows zeros. So a stored checksum of zero is
  // always compared with the payload's.
  void judge(std::size_t i, const Seal& seal, std::optional<MaskedCrc> computed) {
    Verdict verdict = header_check_(rows_[i], seal);
    const MaskedCrc stored = decode_footer(seal.footer);
    const bool checks_payload = verify_ == Verify::full || rows_[i].shard->file->is_inflated();
    if (verdict == Verdict::good && (checks_payload || stored == MaskedCrc{0})) {
      if (!computed) {
        computed = masked_crc32c(data_ + offsets_[i],
                                 static_cast<std::size_t>(rows_[i].frame.payload_bytes));
      }
      if (*computed != stored) verdict = Verdict::bad_payload;
    }
    if (verdict != Verdict::good && mend(i)) return read_again(i);
    if (verdict != Verdict::good) {
      bad_.push_back(
          explain(rows_[i], batch_row(i), verdict, seal, computed.value_or(MaskedCrc{}), advice_));
    }
  }

  const std::span<const Row> rows_;
  const Verify verify_;
  const AtBadRow at_bad_row_;
  std::uint8_t* const data_;
  const std::int64_t* const offsets_;
  const std::size_t first_row_;
  const std::size_t* const batch_rows_;
  const SkipAdvice advice_;
  const bool streams_;
  HeaderCheck header_check_;
  std::unique_ptr<std::uint8_t[]> frames_;  // of a piece that is read
  bool gave_up_ = false;
  std::size_t tried_rows_ = 0;  // if reading gave up
  bool is_mended_ = false;      // whether the current row was mended
  std::vector<BadRow> bad_;
};

}  // namespace

std::vector<BadRow> read_frames(std::span<const Row> rows, Verify verify, AtBadRow at_bad_row,
                                const RecordBatch& batch, std::size_t first_row) {
  return FrameReading(rows, verify, at_bad_row, batch.data(), batch.offsets() + first_row,
                      first_row, nullptr, SkipAdvice::try_it,
                      batch.data_bytes() >= kMinStreamedBatch)
      .run();
}

std::vector<BadRow> read_frames(std::span<const Row> rows, std::span<const std::size_t> batch_rows,
                                Verify verify, AtBadRow at_bad_row, const RecordBatch& batch) {
  std::vector<std::int64_t> offsets(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) offsets[i] = batch.offsets()[batch_rows[i]];
  return FrameReading(rows, verify, at_bad_row, batch.data(), offsets.data(), 0, batch_rows.data())
      .run();
}

void read_frame(const Row& row, Verify verify, SkipAdvice advice, std::uint8_t* out,
                std::uint64_t batch_bytes) {
  constexpr std::int64_t kOffset = 0;
  std::vector<BadRow> bad = FrameReading({&row, 1}, verify, AtBadRow::stop, out, &kOffset, 0,
                                         nullptr, advice, batch_bytes >= kMinStreamedBatch)
                                .run();
  if (!bad.empty()) throw std::move(bad.front().error);
}

}  // namespace tfrfast
