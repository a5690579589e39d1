#include "tensorflow/records.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "core/base/memory.h"
#include "core/read/batch_space.h"
#include "core/read/row_order.h"
#include "tensorflow/shared_strings.h"

namespace tfrfast::tensorflow {
namespace {

constexpr std::uint64_t kPieceBytes = 1 << 20;
constexpr std::uint64_t kAloneBytes = 256 << 10;

std::size_t piece_end(std::span<const Row> rows, std::size_t begin) {
  std::uint64_t bytes = rows[begin].frame.payload_bytes;
  std::size_t end = begin + 1;
  if (bytes >= kAloneBytes) return end;
  for (; end < rows.size(); ++end) {
    const std::uint64_t more = rows[end].frame.payload_bytes;
    if (more >= kAloneBytes || bytes + more > kPieceBytes) break;
    bytes += more;
  }
  return end;
}

// At most kPieceBytes, or the bytes of a single row.
std::uint64_t payload_bytes_of(std::span<const Row> piece) {
  std::uint64_t bytes = 0;
  for (const Row& row : piece) bytes += row.frame.payload_bytes;
  return bytes;
}

}  // namespace

std::string summary_of(std::span<const Trouble> troubles) {
  if (troubles.empty()) return "";
  std::string error = troubles.front().error;
  const std::size_t more = troubles.size() - 1;
  if (more == 1) error.append(" 1 more error follows.");
  if (more > 1) error.append(" ").append(std::to_string(more)).append(" more errors follow.");
  return error;
}

Records Records::read(std::span<const Row> rows, const ReadOptions& options) {
  Records records;
  records.rows_ = rows.size();
  std::uint64_t bytes_left = max_memory_bytes();
  bool is_full = false;
  for (std::size_t begin = 0; begin < rows.size();) {
    const std::size_t end = piece_end(rows, begin);
    const std::span<const Row> piece = rows.subspan(begin, end - begin);
    const std::uint64_t bytes = payload_bytes_of(piece);
    if (bytes <= bytes_left) {
      bytes_left -= bytes;
      records.copy_piece(piece, begin, options);
    } else {
      if (!is_full) records.add_trouble(begin, encode_error(too_large(rows)));
      is_full = true;
      records.leave_out(begin, end);
    }
    begin = end;
  }
  records.read_waiting(rows, options);
  return records;
}

void Records::copy_piece(std::span<const Row> rows, std::size_t first, const ReadOptions& options) {
  auto batch = std::make_shared<RecordBatch>(rows.size());
  make_space(rows, *batch);
  if (!any_is_inflated(rows)) {
    const std::vector<BadRow> bad = read_frames(rows, options.verify, AtBadRow::go_on, *batch, 0);
    leave_out(bad, first, options.skip_damage);
  } else {
    for (std::size_t row = first; row < first + rows.size(); ++row) {
      waiting_.push_back({row, pieces_.size()});
    }
  }
  pieces_.push_back({first, std::move(batch), {}});
}

void Records::read_waiting(std::span<const Row> rows, const ReadOptions& options) {
  std::sort(waiting_.begin(), waiting_.end(), [rows](const Waiting& a, const Waiting& b) {
    return lies_before(rows[a.row], rows[b.row]);
  });
  std::vector<Row> run;
  std::vector<std::size_t> places;
  for (std::size_t begin = 0; begin < waiting_.size();) {
    const Piece& piece = pieces_[waiting_[begin].piece];
    run.clear();
    places.clear();
    std::size_t end = begin;
    for (; end < waiting_.size() && waiting_[end].piece == waiting_[begin].piece; ++end) {
      run.push_back(rows[waiting_[end].row]);
      places.push_back(waiting_[end].row - piece.first_row);
    }
    const std::vector<BadRow> bad =
        read_frames(run, places, options.verify, AtBadRow::go_on, *piece.batch);
    leave_out(bad, piece.first_row, options.skip_damage);
    begin = end;
  }
  waiting_.clear();
}

void Records::leave_out(const std::vector<BadRow>& bad, std::size_t first, bool skip_damage) {
  for (const BadRow& each : bad) {
    if (left_out_.empty()) left_out_.resize(rows_);
    left_out_[first + each.row] = true;
    if (each.is_untried) continue;
    if (!skip_damage || !each.is_damage) add_trouble(first + each.row, encode_error(each.error));
  }
}

void Records::leave_out(std::size_t begin, std::size_t end) {
  if (left_out_.empty()) left_out_.resize(rows_);
  std::fill(left_out_.begin() + static_cast<std::ptrdiff_t>(begin),
            left_out_.begin() + static_cast<std::ptrdiff_t>(end), true);
}

Records Records::of_made(const RecordSource& source, std::span<const std::int64_t> records) {
  Records made;
  made.rows_ = records.size();
  const auto at_once = static_cast<std::size_t>(
      std::max<std::uint64_t>(1, kPieceBytes / (source.mean_record_bytes() + 1)));
  for (std::size_t first = 0; first < records.size(); first += at_once) {
    const std::size_t end = std::min(records.size(), first + at_once);
    const std::shared_ptr<const RecordBatch> batch =
        source.read({records.subspan(first, end - first), nullptr, 1, nullptr, true});
    std::vector<WireBytes> payloads(end - first);
    std::size_t next = 0;
    for (std::size_t row = first; row < end; ++row) {
      if (next < batch->size() && batch->indices()[next] == records[row]) {
        payloads[row - first] = (*batch)[next++];
      } else {  // it is damaged, and left out
        made.leave_out(row, row + 1);
      }
    }
    made.pieces_.push_back({first, batch, std::move(payloads)});
  }
  return made;
}

Records Records::of_error(std::string error) {
  Records records;
  records.add_trouble(0, std::move(error));
  return records;
}

void Records::add_trouble(std::size_t row, std::string error) {
  const auto after = std::find_if(troubles_.begin(), troubles_.end(),
                                  [row](const Trouble& each) { return each.row >= row; });
  troubles_.insert(after, {row, std::move(error)});
}

void Records::write(KernelCall& call, int first) const {
  const std::size_t split = troubles_.empty() ? rows_ : troubles_.front().row;
  write_rows(call, first, 0, split);
  call.set_string(first + 1, error());
  write_rows(call, first + 2, split, rows_);
}

void Records::write_rows(KernelCall& call, int output, std::size_t begin, std::size_t end) const {
  std::size_t count = end - begin;
  for (std::size_t row = begin; row < end; ++row) count -= is_left_out(row);

  TString* out = call.allocate_strings(output, count).data();
  std::vector<std::size_t> kept;
  for (const Piece& piece : pieces_) {
    const std::size_t from = std::max(begin, piece.first_row);
    const std::size_t to = std::min(end, piece.first_row + piece.size());
    if (from >= to) continue;
    kept.clear();
    for (std::size_t row = from; row < to; ++row) {
      if (!is_left_out(row)) kept.push_back(row - piece.first_row);
    }
    write_shared_strings(
        out, kept.size(), [&](std::size_t i) { return piece[kept[i]]; }, piece.batch);
    out += kept.size();
  }
}

}  // namespace tfrfast::tensorflow
