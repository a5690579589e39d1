#include "tensorflow/decoding.h"

#include <algorithm>

#include "core/base/memory.h"
#include "core/read/batch_space.h"
#include "core/read/read_ahead.h"
#include "core/read/row_order.h"

namespace tfrfast::tensorflow {
namespace {

// Records are decoded while they are still in the core's own cache.
constexpr std::uint64_t kPieceBytes = 128 << 10;

// Returns the end of a piece of about kPieceBytes, or of one long row.
std::size_t piece_end(std::span<const Row> rows, std::size_t begin) {
  std::uint64_t bytes = rows[begin].frame.payload_bytes;
  std::size_t end = begin + 1;
  for (; end < rows.size() && bytes < kPieceBytes; ++end) {
    if (rows[end].frame.payload_bytes > kPieceBytes) break;
    bytes += rows[end].frame.payload_bytes;
  }
  return end;
}

}  // namespace

RowDecoder::RowDecoder(std::shared_ptr<const FeatureSchema> features)
    : decoder_(std::move(features), [this](std::int64_t) {
        const Row& row = *good_[decoder_.rows_decoded()];
        return RecordOrigin::in_shard(row.shard->file->path(), row.number);
      }) {}

DecodedRows RowDecoder::decode(std::span<const Row> rows, const ReadOptions& options) {
  std::vector<Trouble> troubles;
  good_.clear();
  decoder_.begin(rows.size());
  if (any_is_inflated(rows) && !are_in_order(rows)) {
    // Read as one piece, so that nothing is inflated twice.
    decode_piece(rows, options, 0, troubles);
    return {decoder_.finish(), good_.size(), summary_of(troubles)};
  }
  std::uint64_t batch_bytes = 0;
  for (const Row& row : rows) batch_bytes = add_or_max(batch_bytes, row.frame.payload_bytes);
  for (std::size_t begin = 0; begin < rows.size();) {
    if (decode_in_place(rows[begin], options, batch_bytes)) {
      ++begin;
      continue;
    }
    const std::size_t end = piece_end(rows, begin);
    decode_piece(rows.subspan(begin, end - begin), options, begin, troubles);
    begin = end;
  }
  return {decoder_.finish(), good_.size(), summary_of(troubles)};
}

// Reads a long record straight into its column's memory. False if the record has to be read in the
// usual way. The usual way also reports why a record cannot be read.
bool RowDecoder::decode_in_place(const Row& row, const ReadOptions& options,
                                 std::uint64_t batch_bytes) {
  const auto bytes = static_cast<std::size_t>(row.frame.payload_bytes);
  // A failed request to a network has taken long, and would be repeated.
  if (row.shard->file->traits().is_remote) return false;
  std::uint8_t* const place = decoder_.place(bytes);
  if (place == nullptr) return false;
  try {
    read_frame(row, options.verify, SkipAdvice::try_it, place, batch_bytes);
  } catch (const Error&) {
    decoder_.give_up_place();
    return false;
  }
  good_.push_back(&row);
  if (decoder_.decode_placed({place, bytes}, static_cast<std::int64_t>(row.record))) return true;
  good_.pop_back();
  return false;
}

std::vector<BadRow> RowDecoder::read_piece(std::span<const Row> rows, const ReadOptions& options,
                                           RecordBatch& piece) {
  std::vector<std::size_t> order;
  if (any_is_inflated(rows)) order = order_of_places(rows);
  if (order.empty()) return read_frames(rows, options.verify, AtBadRow::go_on, piece, 0);
  std::vector<Row> sorted;
  sorted.reserve(order.size());
  for (const std::size_t row : order) sorted.push_back(rows[row]);
  std::vector<BadRow> bad = read_frames(sorted, order, options.verify, AtBadRow::go_on, piece);
  std::sort(bad.begin(), bad.end(), [](const BadRow& a, const BadRow& b) { return a.row < b.row; });
  return bad;
}

void RowDecoder::decode_piece(std::span<const Row> rows, const ReadOptions& options,
                              std::size_t first, std::vector<Trouble>& troubles) {
  RecordBatch piece(rows.size());
  make_space(rows, piece);
  const std::vector<BadRow> bad = read_piece(rows, options, piece);
  wires_.clear();
  records_.clear();
  auto next_bad = bad.begin();
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (next_bad != bad.end() && next_bad->row == row) {
      if (!next_bad->is_untried && (!options.skip_damage || !next_bad->is_damage)) {
        troubles.push_back({first + row, encode_error(next_bad->error)});
      }
      ++next_bad;
      continue;
    }
    wires_.push_back(piece[row]);
    records_.push_back(static_cast<std::int64_t>(rows[row].record));
    good_.push_back(&rows[row]);
  }
  decoder_.decode(wires_, records_);
}

std::shared_ptr<const LoadingPlan> DecodingKernel::plan(std::string_view encoded,
                                                        std::int64_t epoch, std::int64_t key) {
  return plans_.get([=](const LoadingPlan& last) { return last.is_of(encoded, epoch, key); },
                    [=] { return LoadingPlan(encoded, epoch, key); });
}

void DecodingKernel::come_to(const std::shared_ptr<const Source>& source,
                             const std::shared_ptr<const LoadingPlan>& plan, std::int64_t step,
                             std::int64_t steps) {
  shares_.place().come_to(source, step, [&] {
    return Course{source, plan->name() + " " + std::to_string(steps), steps,
                  [plan](std::int64_t each) { return plan->rows(each).records; }};
  });
}

// A worker that throws is dropped, because its work is half done.
LoadedBatch DecodingKernel::load(const std::shared_ptr<const Source>& source,
                                 const std::shared_ptr<const FeatureSchema>& features,
                                 std::span<const std::int64_t> records, const bool* valid,
                                 std::span<const std::uint64_t> draws) {
  static const std::atomic<bool> never{false};
  Announcements announced;
  if (source->records()->is_remote()) announced = source->announce(records);
  const std::vector<std::shared_ptr<const void>> what = {source, features};
  std::unique_ptr<BatchWork> work =
      works_.take(what, [&] { return std::make_unique<BatchWork>(source->records(), features); });
  LoadedBatch batch = work->load(records, valid, never, draws);
  works_.put_back(what, std::move(work));
  return batch;
}

DecodedRows DecodingKernel::decode(const std::shared_ptr<const Source>& source,
                                   const std::shared_ptr<const FeatureSchema>& features,
                                   std::span<const Row> rows) {
  const std::vector<std::shared_ptr<const void>> what = {features};
  std::unique_ptr<RowDecoder> decoder =
      row_decoders_.take(what, [&] { return std::make_unique<RowDecoder>(features); });
  const Announcements announced = source->announce(rows);
  try {
    DecodedRows decoded = decoder->decode(rows, source->read_options());
    row_decoders_.put_back(what, std::move(decoder));
    return decoded;
  } catch (const Error& error) {
    return failed(features, error);
  }
}

DecodedRows DecodingKernel::failed(const std::shared_ptr<const FeatureSchema>& features,
                                   const Error& error) {
  return {decode(features, {}, {}), 0, encode_error(error)};
}

std::vector<Column> DecodingKernel::decode(const std::shared_ptr<const FeatureSchema>& features,
                                           std::span<const WireBytes> wires,
                                           std::span<const std::int64_t> record_numbers) {
  const std::vector<std::shared_ptr<const void>> what = {features};
  std::unique_ptr<BatchDecoder> decoder =
      decoders_.take(what, [&] { return std::make_unique<BatchDecoder>(features); });
  decoder->begin(wires.size());
  decoder->decode(wires, record_numbers);
  std::vector<Column> columns = decoder->finish();
  decoders_.put_back(what, std::move(decoder));
  return columns;
}

}  // namespace tfrfast::tensorflow
