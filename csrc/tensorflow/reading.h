// Reads the rows of a batch, as strings or as columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/example/columns.h"
#include "core/example/decode.h"
#include "core/read/reader.h"
#include "core/read/record_batch.h"
#include "tensorflow/source.h"

namespace tfrfast::tensorflow {

// The rows of a batch before they are read.
struct BatchRows {
  std::shared_ptr<const Source> source;
  std::vector<Row> rows;              // none if the source makes its records
  std::vector<std::int64_t> records;  // the rows' numbers in the source; none in file order
  std::vector<std::uint64_t> draws;   // a random number for each row, if images need them
  std::uint64_t epoch = 0;            // of draws that decide what a record holds
  PlannedBatch planned;               // empty unless a Loader's plan has the rows
  std::string error;                  // in place of the rows, or after them; "" for none
  std::vector<std::shared_ptr<const void>> files;  // keep the rows' files and their plan open

  std::size_t size() const noexcept { return rows.empty() ? records.size() : rows.size(); }
};

// An error before row `row`.
struct Trouble {
  std::size_t row = 0;
  std::string error;
};

// Some good rows of a batch, in order, and the memory of their records.
struct GoodRows {
  std::shared_ptr<const RecordBatch> memory;
  std::vector<std::size_t> rows;
  std::vector<WireBytes> payloads;
};

// What was read of a batch: the good rows, and errors at the places of other rows.
struct ReadBatch {
  std::vector<GoodRows> pieces;   // unless decoded
  std::vector<Column> columns;    // if decoded
  std::vector<std::size_t> rows;  // the good ones
  std::vector<Trouble> troubles;  // by row
  std::uint64_t payload_bytes = 0;
  // The first error, and the number of others; "" for none.
  std::string error() const;
  std::size_t rows_before_error() const;
};

// Reads strings in pieces of about a mebibyte, and large records alone, so that a string that
// outlives its batch keeps little memory. Rows of compressed files that are not in order are one
// piece, so that nothing is inflated twice. Leaves out damaged rows, with an error unless damage is
// skipped, and rows that memory cannot hold together with earlier ones, with one error for all.
// Throws Error.
ReadBatch read_strings(const BatchRows& batch);

class Decoders;
// Announces and reads a batch: as strings if `decoders` is null. Throws Error.
ReadBatch read_batch(const BatchRows& batch, const Decoders* decoders);

// Reads and decodes batches in pieces that fit into a core's cache. One thread at a time.
class RowDecoder {
 public:
  explicit RowDecoder(std::shared_ptr<const FeatureSchema> features);
  RowDecoder(const RowDecoder&) = delete;
  RowDecoder& operator=(const RowDecoder&) = delete;

  // Leaves out damaged rows as read_strings() does. As in TensorFlow's parser, a row that does not
  // fit the features fails the whole batch. Throws Error.
  ReadBatch decode(const BatchRows& batch);
  // Decodes records in memory. Errors name rows.
  std::vector<Column> decode(std::span<const WireBytes> records);

 private:
  bool decode_in_place(std::size_t row, std::uint64_t batch_bytes);
  void decode_piece(const GoodRows& piece);
  RecordOrigin origin(std::int64_t record) const;
  std::int64_t number(std::size_t row) const;
  std::uint64_t draw(std::size_t row) const;

  BatchDecoder decoder_;
  const BatchRows* batch_ = nullptr;  // the current one
  std::vector<std::size_t> rows_;     // its good rows, and those being decoded
  std::vector<std::int64_t> numbers_;
  std::vector<std::uint64_t> draws_;
  std::vector<PackedRecord> places_;
};

// Features, and idle decoders, which remember the order of features from call to call. Safe from
// many threads.
class Decoders {
 public:
  explicit Decoders(FeatureSchema features)
      : features_(std::make_shared<const FeatureSchema>(std::move(features))) {}
  static Decoders decode(std::string_view encoded) {
    return Decoders(FeatureSchema::decode(encoded));
  }

  const FeatureSchema& features() const noexcept { return *features_; }
  // Calls use(decoder). A decoder that throws is dropped, because its work is half done.
  template <class Use>
  auto with_one(const Use& use) const {
    std::unique_ptr<RowDecoder> decoder = take();
    auto result = use(*decoder);
    const std::lock_guard lock(idle_->mutex);
    idle_->decoders.push_back(std::move(decoder));
    return result;
  }
  std::vector<Column> no_rows() const {
    return with_one([](RowDecoder& decoder) { return decoder.decode(std::span<WireBytes>()); });
  }

 private:
  std::unique_ptr<RowDecoder> take() const;

  struct Idle {
    std::mutex mutex;
    std::vector<std::unique_ptr<RowDecoder>> decoders;
  };
  std::shared_ptr<const FeatureSchema> features_;
  std::unique_ptr<Idle> idle_ = std::make_unique<Idle>();
};

}  // namespace tfrfast::tensorflow
