#include "tensorflow/reading.h"

#include <algorithm>

#include "core/base/memory.h"
#include "core/read/batch_space.h"
#include "core/read/row_order.h"
#include "tensorflow/kernel_call.h"

namespace tfrfast::tensorflow {
namespace {

// How rows are cut into pieces: a longer record is alone, and a piece ends where it has the bytes.
struct PieceLimits {
  std::uint64_t bytes = 0;
  std::uint64_t alone_bytes = 0;
};
constexpr PieceLimits kStrings = {1 << 20, 256 << 10};
// Records are decoded while they are still in the core's own cache.
constexpr PieceLimits kDecoded = {128 << 10, 128 << 10};

std::size_t piece_end(const BatchRows& batch, std::size_t begin, PieceLimits pieces) {
  if (batch.rows.empty()) {
    const std::uint64_t mean = batch.source->records()->mean_record_bytes() + 1;
    const auto count = static_cast<std::size_t>(std::max<std::uint64_t>(1, pieces.bytes / mean));
    return begin + std::min(count, batch.size() - begin);
  }
  const auto bytes_of = [&](std::size_t row) { return batch.rows[row].frame.payload_bytes; };
  std::uint64_t bytes = bytes_of(begin);
  std::size_t end = begin + 1;
  if (bytes >= pieces.alone_bytes) return end;
  for (; end < batch.size(); ++end) {
    if (bytes_of(end) >= pieces.alone_bytes || bytes + bytes_of(end) > pieces.bytes) break;
    bytes += bytes_of(end);
  }
  return end;
}

bool is_one_piece(const BatchRows& batch) {
  return any_is_inflated(batch.rows) && !are_in_order(batch.rows);
}

// At most the bytes of a piece, or of a single row.
std::uint64_t payload_bytes(std::span<const Row> rows) {
  std::uint64_t bytes = 0;
  for (const Row& row : rows) bytes = add_or_max(bytes, row.frame.payload_bytes);
  return bytes;
}

std::vector<BadRow> read_in_file_order(std::span<const Row> rows, Verify verify,
                                       RecordBatch& piece) {
  std::vector<std::size_t> order;
  if (any_is_inflated(rows)) order = order_of_places(rows);
  if (order.empty()) return read_frames(rows, verify, AtBadRow::go_on, piece, 0);
  std::vector<Row> sorted;
  sorted.reserve(order.size());
  for (const std::size_t row : order) sorted.push_back(rows[row]);
  std::vector<BadRow> bad = read_frames(sorted, order, verify, AtBadRow::go_on, piece);
  std::sort(bad.begin(), bad.end(), [](const BadRow& a, const BadRow& b) { return a.row < b.row; });
  return bad;
}

// Reads records that are made from parts of frames.
GoodRows read_made(const BatchRows& batch, std::size_t begin, std::size_t end) {
  const std::span<const std::int64_t> records(batch.records);
  GoodRows piece;
  piece.memory = batch.source->records()->read(
      {records.subspan(begin, end - begin), nullptr, 1, nullptr, true, batch.epoch});
  std::size_t next = 0;
  for (std::size_t row = begin; row < end; ++row) {  // damaged records are left out
    if (next == piece.memory->size() || piece.memory->indices()[next] != records[row]) continue;
    piece.rows.push_back(row);
    piece.payloads.push_back((*piece.memory)[next++]);
  }
  return piece;
}

GoodRows read_piece(const BatchRows& batch, std::size_t begin, std::size_t end,
                    std::vector<Trouble>& troubles) {
  if (batch.rows.empty()) return read_made(batch, begin, end);
  const ReadOptions options = batch.source->read_options();
  const std::span<const Row> rows = std::span(batch.rows).subspan(begin, end - begin);
  const auto memory = std::make_shared<RecordBatch>(rows.size());
  make_space(rows, *memory);
  const std::vector<BadRow> bad = read_in_file_order(rows, options.verify, *memory);
  GoodRows piece{memory, {}, {}};
  piece.rows.reserve(rows.size());
  piece.payloads.reserve(rows.size());
  auto next_bad = bad.begin();
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (next_bad == bad.end() || next_bad->row != row) {
      piece.rows.push_back(begin + row);
      piece.payloads.push_back((*memory)[row]);
      continue;
    }
    if (!next_bad->is_untried && (!options.skip_damage || !next_bad->is_damage)) {
      troubles.push_back({begin + row, encode_error(next_bad->error)});
    }
    ++next_bad;
  }
  return piece;
}

}  // namespace

std::string ReadBatch::error() const {
  if (troubles.empty()) return "";
  std::string error = troubles.front().error;
  const std::size_t more = troubles.size() - 1;
  if (more == 1) error.append(" 1 more error follows.");
  if (more > 1) error.append(" ").append(std::to_string(more)).append(" more errors follow.");
  return error;
}

std::size_t ReadBatch::rows_before_error() const {
  if (troubles.empty()) return rows.size();
  const auto at = std::lower_bound(rows.begin(), rows.end(), troubles.front().row);
  return static_cast<std::size_t>(at - rows.begin());
}

ReadBatch read_strings(const BatchRows& batch) {
  ReadBatch read;
  const bool is_whole = is_one_piece(batch);
  std::uint64_t bytes_left = max_memory_bytes();
  bool is_full = false;
  for (std::size_t begin = 0; begin < batch.size();) {
    const std::size_t end = is_whole ? batch.size() : piece_end(batch, begin, kStrings);
    std::uint64_t bytes = 0;
    if (!batch.rows.empty() && !is_whole) {
      bytes = payload_bytes(std::span(batch.rows).subspan(begin, end - begin));
    }
    if (bytes <= bytes_left) {
      bytes_left -= bytes;
      GoodRows piece = read_piece(batch, begin, end, read.troubles);
      read.payload_bytes += piece.memory->data_bytes();
      read.rows.insert(read.rows.end(), piece.rows.begin(), piece.rows.end());
      read.pieces.push_back(std::move(piece));
    } else if (!std::exchange(is_full, true)) {
      read.troubles.push_back({begin, encode_error(too_large(batch.rows))});
    }
    begin = end;
  }
  return read;
}

RowDecoder::RowDecoder(std::shared_ptr<const FeatureSchema> features)
    : decoder_(std::move(features), [this](std::int64_t record) { return origin(record); }) {}

RecordOrigin RowDecoder::origin(std::int64_t record) const {
  if (batch_ == nullptr) return {"Record " + std::to_string(record), {}, record};
  if (!batch_->records.empty()) {
    return batch_->source->records()->origin(static_cast<std::uint64_t>(record));
  }
  const Row& row = batch_->rows[rows_[decoder_.rows_decoded()]];
  return RecordOrigin::in_shard(row.shard->file->path(), row.number);
}

std::int64_t RowDecoder::number(std::size_t row) const {
  return batch_->records.empty() ? static_cast<std::int64_t>(batch_->rows[row].record)
                                 : batch_->records[row];
}

std::uint64_t RowDecoder::draw(std::size_t row) const {
  return batch_->draws.empty() ? 0 : batch_->draws[row];
}

std::vector<Column> RowDecoder::decode(std::span<const WireBytes> records) {
  batch_ = nullptr;
  decoder_.begin(records.size());
  if (!records.empty()) decoder_.decode(records, {});  // columns without rows may be packed
  return decoder_.finish();
}

ReadBatch RowDecoder::decode(const BatchRows& batch) {
  ReadBatch read;
  batch_ = &batch;
  rows_.clear();
  decoder_.begin(batch.size(), batch.planned.packs, batch.planned.tokens);
  const bool is_packed = !batch.planned.tokens.empty();
  const bool is_whole = is_one_piece(batch);
  const std::uint64_t batch_bytes = payload_bytes(batch.rows);
  for (std::size_t begin = 0; begin < batch.size();) {
    if (!is_whole && !is_packed && !batch.rows.empty() && decode_in_place(begin, batch_bytes)) {
      read.payload_bytes += batch.rows[begin].frame.payload_bytes;
      ++begin;
      continue;
    }
    const std::size_t end = is_whole ? batch.size() : piece_end(batch, begin, kDecoded);
    const GoodRows piece = read_piece(batch, begin, end, read.troubles);
    read.payload_bytes += piece.memory->data_bytes();
    decode_piece(piece);
    begin = end;
  }
  read.columns = decoder_.finish();
  read.rows = rows_;
  return read;
}

// Reads a long record straight into its column's memory. False if the record has to be read in the
// usual way. The usual way also reports why a record cannot be read.
bool RowDecoder::decode_in_place(std::size_t at, std::uint64_t batch_bytes) {
  const Row& row = batch_->rows[at];
  const auto bytes = static_cast<std::size_t>(row.frame.payload_bytes);
  // A failed request to a network has taken long, and would be repeated.
  if (row.shard->file->traits().is_remote) return false;
  std::uint8_t* const place = decoder_.place(bytes);
  if (place == nullptr) return false;
  try {
    const Verify verify = batch_->source->read_options().verify;
    read_frame(row, verify, SkipAdvice::try_it, place, batch_bytes);
  } catch (const Error&) {
    decoder_.give_up_place();
    return false;
  }
  rows_.push_back(at);
  if (decoder_.decode_placed({place, bytes}, number(at), draw(at))) return true;
  rows_.pop_back();
  return false;
}

void RowDecoder::decode_piece(const GoodRows& piece) {
  numbers_.clear();
  draws_.clear();
  places_.clear();
  for (const std::size_t row : piece.rows) {
    rows_.push_back(row);
    numbers_.push_back(number(row));
    if (!batch_->draws.empty()) draws_.push_back(draw(row));
    if (!batch_->planned.tokens.empty()) places_.push_back(batch_->planned.rows[row]);
  }
  decoder_.decode(piece.payloads, numbers_, draws_, places_);
}

ReadBatch read_batch(const BatchRows& batch, const Decoders* decoders) {
  ReadBatch read;
  if (batch.size() > 0 || batch.planned.packs > 0) {
    const Announcements announced = batch.rows.empty()
                                        ? batch.source->announce(batch.records, batch.epoch)
                                        : batch.source->announce(batch.rows);
    read = decoders == nullptr
               ? read_strings(batch)
               : decoders->with_one([&](RowDecoder& decoder) { return decoder.decode(batch); });
  }
  if (!batch.error.empty()) read.troubles.push_back({batch.size(), batch.error});
  return read;
}

std::unique_ptr<RowDecoder> Decoders::take() const {
  const std::lock_guard lock(idle_->mutex);
  if (idle_->decoders.empty()) return std::make_unique<RowDecoder>(features_);
  std::unique_ptr<RowDecoder> decoder = std::move(idle_->decoders.back());
  idle_->decoders.pop_back();
  return decoder;
}

}  // namespace tfrfast::tensorflow
