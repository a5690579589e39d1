// Moves records from shards into string tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/example/wire.h"
#include "core/read/reader.h"
#include "core/read/record_batch.h"
#include "tensorflow/kernel_call.h"

namespace tfrfast::tensorflow {

// An error before row `row`.
struct Trouble {
  std::size_t row = 0;
  std::string error;
};

// Joins all errors into one. "" for none.
std::string summary_of(std::span<const Trouble> troubles);

// The output of one call: the records before the first error, the error, and the good records after
// the error. Rows are read in pieces of about a mebibyte, and large records alone, so that a string
// that outlives its batch keeps little memory.
class Records {
 public:
  // Reads `rows`. Leaves out damaged rows, with an error unless the options say to skip damage.
  // Leaves out the rows that memory cannot hold together with earlier rows, with one error for all.
  static Records read(std::span<const Row> rows, const ReadOptions& options);
  // Reads records of a source whose records are not frames. Throws Error.
  static Records of_made(const RecordSource& source, std::span<const std::int64_t> records);
  static Records of_error(std::string error);

  // Adds an error between two rows, before row `row`.
  void add_trouble(std::size_t row, std::string error);

  // Writes outputs `first`, `first + 1` and `first + 2`: head, error ("" for none) and tail.
  void write(KernelCall& call, int first) const;
  // Writes all good records to one output.
  void write_all(KernelCall& call, int output) const { write_rows(call, output, 0, rows_); }

  std::string error() const { return summary_of(troubles_); }
  bool is_left_out(std::size_t row) const { return !left_out_.empty() && left_out_[row]; }
  // Calls visit(row, payload) for each good record, in order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Piece& piece : pieces_) {
      for (std::size_t i = 0; i < piece.size(); ++i) {
        if (!is_left_out(piece.first_row + i)) visit(piece.first_row + i, piece[i]);
      }
    }
  }

 private:
  struct Piece {
    std::size_t first_row = 0;
    std::shared_ptr<const RecordBatch> batch;
    std::vector<WireBytes> payloads;  // of made records, some of which may be left out

    std::size_t size() const { return payloads.empty() ? batch->size() : payloads.size(); }
    WireBytes operator[](std::size_t i) const {
      return payloads.empty() ? (*batch)[i] : payloads[i];
    }
  };
  // A row that is not read yet, and its piece.
  struct Waiting {
    std::size_t row = 0;
    std::size_t piece = 0;
  };
  // Rows of compressed files wait until all pieces are known.
  void copy_piece(std::span<const Row> rows, std::size_t first, const ReadOptions& options);
  // Reads the waiting rows in the order of their places, so that nothing is inflated twice.
  void read_waiting(std::span<const Row> rows, const ReadOptions& options);
  void leave_out(std::size_t begin, std::size_t end);
  void leave_out(const std::vector<BadRow>& bad, std::size_t first, bool skip_damage);
  void write_rows(KernelCall& call, int output, std::size_t begin, std::size_t end) const;

  std::size_t rows_ = 0;
  std::vector<Piece> pieces_;
  std::vector<Waiting> waiting_;
  std::vector<bool> left_out_;  // empty if no row is left out
  std::vector<Trouble> troubles_;
};

}  // namespace tfrfast::tensorflow
