// Records on their way from shards into string tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/example/wire.h"
#include "core/read/frame_reader.h"
#include "core/read/record_batch.h"
#include "tensorflow/kernel_call.h"

namespace tfrfast::tensorflow {

// What one call delivers: records before the first trouble, the trouble, and the good ones behind.
// Rows are read in pieces of about a mebibyte, large records alone, so that a string that outlives
// the others keeps little memory; or they stay where they are mapped.
class Records {
 public:
  enum class Place : std::uint8_t {
    copied,
    // What is mapped stays there, if strings can keep the mapping: for files that nobody changes.
    mapped,
  };
  // Reads `rows`. Damaged ones are left out; under `skip_damage` without a word. Those that memory
  // cannot hold beside the ones before them are left out, with one error for all.
  static Records read(std::span<const Row> rows, bool skip_damage, Place place);
  static Records of_error(std::string error);

  // A trouble that lies between two rows: before row `row`.
  void add_trouble(std::size_t row, std::string error);

  // Outputs `first`, `first + 1` and `first + 2`: head, error ("" for none) and tail.
  void write(KernelCall& call, int first) const;
  // All good ones into one output.
  void write_all(KernelCall& call, int output) const { write_rows(call, output, 0, rows_); }

  std::string error() const;
  bool is_left_out(std::size_t row) const { return !left_out_.empty() && left_out_[row]; }
  // visit(row, payload) for each good one, in order.
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
    std::shared_ptr<const RecordBatch> batch;  // of copied rows; null for mapped ones
    std::shared_ptr<const StoredFile> file;    // that those are mapped from
    std::vector<WireBytes> payloads;           // and where

    std::size_t size() const { return batch != nullptr ? batch->size() : payloads.size(); }
    WireBytes operator[](std::size_t i) const {
      return batch != nullptr ? (*batch)[i] : payloads[i];
    }
    std::shared_ptr<const void> memory() const {
      return batch != nullptr ? std::shared_ptr<const void>(batch) : file;
    }
  };
  struct Trouble {
    std::size_t row = 0;  // the first row behind it
    std::string error;
  };
  void copy_piece(std::span<const Row> rows, std::size_t first, bool skip_damage);
  void map_piece(std::span<const Row> rows, std::size_t first, bool skip_damage);
  void leave_out(std::size_t begin, std::size_t end);
  void leave_out(const std::vector<BadRow>& bad, std::size_t first, bool skip_damage);
  void write_rows(KernelCall& call, int output, std::size_t begin, std::size_t end) const;

  std::size_t rows_ = 0;
  std::vector<Piece> pieces_;
  std::vector<bool> left_out_;  // empty if no row is
  std::vector<Trouble> troubles_;
};

}  // namespace tfrfast::tensorflow
