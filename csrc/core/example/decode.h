// Decodes serialized tf.train.Examples to columns, with the same values as TensorFlow's fast parser
// for everything that it accepts.
//
// The fast path expects each record in the form that every writer uses, with its features in the
// order of the record before, and makes one pass over the bytes, straight into the columns. After
// anything unusual (a key seen twice, unpacked lists, concatenated Examples, damage) the record is
// rolled back and decoded by the exact path, which alone decides what such bytes mean and what an
// error says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/example/columns.h"
#include "core/example/complaint.h"
#include "core/example/schema.h"

namespace tfrfast {

// Decodes batch after batch, each in pieces: begin(), decode() in row order, finish(). Remembers
// the records' order and the batches' sizes. One thread at a time. Decoders may share a schema.
// After a throw, begin() starts again.
//
// Two threads cannot fill one batch. With one thread for each batch, a record's bytes and columns
// stay in one core's caches, and nothing has to be merged.
class BatchDecoder {
 public:
  // With `tracks_presence`, columns say which rows have the feature.
  explicit BatchDecoder(std::shared_ptr<const FeatureSchema> schema, PathOfRecord path_of = {},
                        bool tracks_presence = false);

  void begin(std::size_t rows);

  // Decodes the next rows. `record_numbers` has as many entries as `records`, or is empty: then
  // errors count rows from 0. Throws `feature` for a record that does not fit the schema,
  // `out_of_range` for more rows than were begun.
  void decode(std::span<const WireBytes> records, std::span<const std::int64_t> record_numbers);

  // Where to read the next record, if it has `record_bytes` and is like the last one: most of that
  // was one string, which would not have to be copied. Null if the record should be read elsewhere.
  // After any other result, the next call must be decode_placed() or give_up_place().
  std::uint8_t* place(std::size_t record_bytes);
  // Decodes the record that was read to place(). False if that is not possible, because the record
  // is of an unusual form: read it again elsewhere, and call decode().
  bool decode_placed(WireBytes record, std::int64_t record_number);
  void give_up_place() noexcept;  // it could not be read

  std::size_t rows_decoded() const noexcept { return next_row_; }

  // One column for each feature, in the schema's order, with as many rows as were decoded.
  std::vector<Column> finish();

 private:
  // What the loop over a record's entries needs to know about a feature.
  struct Slot {
    const std::uint64_t* opening = nullptr;
    std::uint32_t opening_bytes = 0;
    std::uint32_t whole_words = 0;  // of the opening, before its last word
    std::uint64_t last_word = 0;
    std::uint64_t last_mask = 0;
    std::uint64_t seen = 0;       // one more than the last row that had it
    std::uint32_t successor = 0;  // the slot that followed this one the last time
    std::uint8_t list_tag = 0;
    ListKind kind = ListKind::none;
    bool fixed = false;
  };

  struct Entry {
    WireBytes feature;
    bool present = false;
  };

  enum class Attempt : std::uint8_t { done, unusual };

  static bool opens_with(const std::uint8_t* next, const std::uint8_t* entry_end,
                         const std::uint8_t* record_end, const Slot& slot) noexcept;
  Attempt decode_usual(WireBytes record);
  Attempt put_usual(std::uint32_t slot, const std::uint8_t* value, const std::uint8_t* entry_end,
                    WireBytes record);
  void end_row(std::int64_t record_number);
  void fill_missing(std::int64_t record_number);
  void expect_string_of(WireBytes record) noexcept;
  void note_absences();
  void roll_back_row() noexcept;

  void decode_exactly(WireBytes record, std::int64_t record_number);
  void collect_entries(WireBytes record, std::int64_t record_number);
  void put_exactly(std::uint32_t slot, WireBytes feature, WireBytes record,
                   std::int64_t record_number);

  std::shared_ptr<const FeatureSchema> schema_;
  PathOfRecord path_of_;
  std::vector<Slot> slots_;  // and one more, whose successor is the record's first feature
  std::vector<ColumnBuilder> columns_;
  std::vector<Entry> entries_;
  // For each feature, the rows that lack it, as in Column.
  struct Absence {
    std::size_t rows = 0;
    PooledBuffer presence;
  };
  std::vector<Absence> absences_;  // empty unless presence is tracked
  std::size_t fixed_features_ = 0;
  std::size_t fixed_seen_ = 0;  // in this row
  std::size_t seen_ = 0;        // in this row, of all features
  std::size_t rows_ = 0;
  std::size_t next_row_ = 0;

  // The string for which the next record is placed.
  struct Expected {
    ColumnBuilder* column = nullptr;  // null: none is expected
    std::size_t before = 0;           // bytes of the record
  };
  Expected expected_;
  unsigned records_to_pass_ = 0;  // before one is placed again
  unsigned pause_ = 0;            // after the next one that cannot be
};

}  // namespace tfrfast
