#include "core/load/batch_work.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/read/reader.h"

namespace tfrfast {
namespace {

// Records are decoded in pieces of this size, while the records are still in the core's own cache.
constexpr std::uint64_t kPieceBytes = 128 << 10;
// From this mean size on, records are tried one by one; see BatchDecoder::place().
constexpr std::uint64_t kMinMeanInPlace = 16 << 10;

// Returns what belongs to the records that were read, of the step's `all`. Damaged records may have
// been left out.
template <class Each>
std::span<const Each> of_read(const RecordBatch& piece, std::span<const std::int64_t> records,
                              std::span<const Each> all, std::size_t first,
                              std::vector<Each>& kept) {
  if (all.empty()) return all;
  if (piece.size() == records.size()) return all.subspan(first, records.size());
  kept.clear();
  std::size_t asked = 0;
  for (std::size_t row = 0; row < piece.size(); ++row, ++asked) {
    while (records[asked] != piece.indices()[row]) ++asked;
    kept.push_back(all[first + asked]);
  }
  return kept;
}

}  // namespace

BatchWork::BatchWork(std::shared_ptr<const RecordSource> source,
                     std::shared_ptr<const FeatureSchema> features, bool tracks_presence)
    : source_(std::move(source)) {
  if (features == nullptr) return;
  piece_rows_ = static_cast<std::size_t>(
      std::max<std::uint64_t>(1, kPieceBytes / (source_->mean_record_bytes() + 1)));
  if (source_->mean_record_bytes() >= kMinMeanInPlace) reads_in_place_ = source_->reader();
  decoder_ =
      std::make_unique<BatchDecoder>(std::move(features), origins_in(source_), tracks_presence);
}

LoadedBatch BatchWork::load(const PlannedBatch& planned, const std::atomic<bool>& cancelled,
                            std::uint64_t epoch, std::span<const std::uint64_t> draws) {
  read_ns_ = 0;
  if (decoder_ != nullptr) return decode(planned, cancelled, epoch, draws);
  LoadedBatch batch;
  // No other thread holds the batch yet, so the receiver may write into it.
  batch.records = std::const_pointer_cast<RecordBatch>(
      read({planned.wanted(), planned.valid.get(), 1, &cancelled, true, epoch}));
  const bool* real = batch.records->valid();
  batch.rows = batch.records->size();
  batch.real_rows = static_cast<std::size_t>(std::count(real, real + batch.rows, true));
  batch.payload_bytes = batch.records->data_bytes();
  return batch;
}

std::shared_ptr<const RecordBatch> BatchWork::read(const ReadRequest& request) {
  std::shared_ptr<const RecordBatch> records;
  timed([&] { records = source_->read(request); });
  return records;
}

LoadedBatch BatchWork::decode(const PlannedBatch& planned, const std::atomic<bool>& cancelled,
                              std::uint64_t epoch, std::span<const std::uint64_t> draws) {
  const std::span<const std::int64_t> records = planned.wanted();
  LoadedBatch batch;
  batch.indices = PooledBuffer(std::max<std::size_t>(1, records.size()) * sizeof(std::int64_t));
  batch.valid = PooledBuffer(std::max<std::size_t>(1, records.size()) * sizeof(bool));
  decoder_->begin(records.size(), planned.packs, planned.tokens);
  const std::uint64_t batch_bytes = records.size() * source_->mean_record_bytes();
  // Rows of compressed shards are read in the order of their places, so larger pieces are better.
  const bool inflates = source_->inflates();
  const std::size_t piece_rows = inflates ? records.size() : piece_rows_;
  for (std::size_t first = 0; first < records.size();) {
    if (cancelled) throw ReadCancelled();
    if (reads_in_place_ != nullptr && !inflates && planned.tokens.empty() &&
        decode_in_place(records[first], draws.empty() ? 0 : draws[first], batch_bytes,
                        batch.payload_bytes)) {
      batch.indices.as<std::int64_t>()[batch.rows] = records[first];
      const bool is_real = first < planned.real_rows;
      batch.valid.as<bool>()[batch.rows] = is_real;
      batch.real_rows += is_real;
      ++batch.rows;
      ++first;
      continue;
    }
    const std::size_t count = std::min(piece_rows, records.size() - first);
    const bool* const valid = planned.valid == nullptr ? nullptr : planned.valid.get() + first;
    const auto piece = read({records.subspan(first, count), valid, 1, &cancelled, true, epoch});
    wires_.clear();
    for (std::size_t row = 0; row < piece->size(); ++row) wires_.push_back((*piece)[row]);
    const auto asked = records.subspan(first, count);
    decoder_->decode(wires_, {piece->indices(), piece->size()},
                     of_read(*piece, asked, draws, first, piece_draws_),
                     of_read(*piece, asked, planned.packed(), first, piece_packed_));
    std::memcpy(batch.indices.as<std::int64_t>() + batch.rows, piece->indices(),
                piece->size() * sizeof(std::int64_t));
    std::memcpy(batch.valid.as<bool>() + batch.rows, piece->valid(), piece->size() * sizeof(bool));
    batch.real_rows +=
        static_cast<std::size_t>(std::count(piece->valid(), piece->valid() + piece->size(), true));
    batch.rows += piece->size();
    batch.payload_bytes += piece->data_bytes();
    first += count;
  }
  batch.columns = decoder_->finish();
  return batch;
}

// Reads a long record straight into its column's memory. False if the record has to be read in the
// usual way. The usual way also reports why a record cannot be read.
bool BatchWork::decode_in_place(std::int64_t record, std::uint64_t draw, std::uint64_t batch_bytes,
                                std::uint64_t& payload_bytes) {
  const Row row = reads_in_place_->locate(static_cast<std::uint64_t>(record));
  const auto bytes = static_cast<std::size_t>(row.frame.payload_bytes);
  // A failed request to a network has taken long, and would be repeated.
  if (row.shard->file->traits().is_remote) return false;
  std::uint8_t* const place = decoder_->place(bytes);
  if (place == nullptr) return false;
  try {
    timed([&] { reads_in_place_->read_into(row, place, batch_bytes); });
  } catch (const Error&) {
    decoder_->give_up_place();
    return false;
  }
  if (!decoder_->decode_placed({place, bytes}, record, draw)) return false;
  payload_bytes += bytes;
  return true;
}

}  // namespace tfrfast
