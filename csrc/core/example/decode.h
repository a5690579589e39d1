// Decodes serialized tf.train.Examples to columns. Accepts every record that TensorFlow's fast
// parser accepts, with the same values. Records of a schema of another message go to its decoder.
//
// The fast path expects each record in the usual form, with features in the order of the previous
// record, and makes one pass over the bytes, straight into the columns. After anything unusual (a
// repeated key, unpacked lists, concatenated Examples, damage) the record is rolled back and
// decoded by the exact path. Only the exact path decides what unusual bytes mean and which error is
// thrown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/example/columns.h"
#include "core/example/complaint.h"
#include "core/example/message_decode.h"
#include "core/example/schema.h"
#include "core/order/plan.h"

namespace tfrfast {

// Decodes batch after batch, each in pieces: begin(), decode() in row order, finish(). Remembers
// the order of features and the sizes of batches. One thread at a time. Decoders may share a
// schema. After a throw, begin() starts again.
//
// Two threads cannot fill one batch. With one thread for each batch, a record's bytes and columns
// stay in one core's caches, and nothing has to be merged.
class BatchDecoder {
 public:
  // With `tracks_presence`, columns say which rows have the feature.
  explicit BatchDecoder(std::shared_ptr<const FeatureSchema> schema, FindOrigin find_origin = {},
                        bool tracks_presence = false);

  // `tokens` are the budgets of a row if rows are packed into `packs` rows.
  void begin(std::size_t rows, std::size_t packs = 0, std::span<const std::int64_t> tokens = {});

  // Decodes the next rows. `record_numbers` has one entry per record, or is empty, in which case
  // errors count rows from 0. Throws `feature` for a record that does not fit the schema, and
  // `out_of_range` for more rows than were begun. `draws` has one entry per record if an image is
  // cropped or mirrored at random, and `packed` if they are packed. `invalid` is thrown if they are
  // missing. A record whose length is not the counted one throws `feature`.
  void decode(std::span<const WireBytes> records, std::span<const std::int64_t> record_numbers,
              std::span<const std::uint64_t> draws = {}, std::span<const PackedRecord> packed = {});

  // Returns where to read the next record of `record_bytes`, if the previous record was mostly one
  // string: the string then needs no copy. Returns null if the record should be read elsewhere.
  // Otherwise the next call must be decode_placed() or give_up_place().
  std::uint8_t* place(std::size_t record_bytes);
  // Decodes the record that was read to place(). False if the record has an unusual form: the
  // caller reads the record again elsewhere and calls decode().
  bool decode_placed(WireBytes record, std::int64_t record_number, std::uint64_t draw = 0);
  void give_up_place() noexcept;  // the record cannot be read

  std::size_t rows_decoded() const noexcept { return next_row_; }

  // One column for each feature, in the schema's order, with as many rows as were decoded.
  std::vector<Column> finish();

 private:
  // The facts about a feature that the loop over a record's entries needs.
  struct FeatureSlot {
    const std::uint64_t* opening = nullptr;
    std::uint32_t opening_bytes = 0;
    std::uint32_t whole_words = 0;  // of the opening, before its last word
    std::uint64_t last_word = 0;
    std::uint64_t last_mask = 0;
    std::uint64_t seen = 0;       // the last row with the feature, plus one
    std::uint32_t successor = 0;  // the slot that came next in the last record
    std::uint8_t list_tag = 0;
    ListKind kind = ListKind::none;
    bool fixed = false;
  };

  struct FoundFeature {
    WireBytes feature;
    bool present = false;
  };

  enum class Attempt : std::uint8_t { done, unusual };

  static bool opens_with(const std::uint8_t* next, const std::uint8_t* entry_end,
                         const std::uint8_t* record_end, const FeatureSlot& slot) noexcept;
  Attempt decode_usual(WireBytes record);
  Attempt put_usual(std::uint32_t slot, const std::uint8_t* value, const std::uint8_t* entry_end,
                    WireBytes record);
  void end_row(std::int64_t record_number);
  void fill_missing(std::int64_t record_number);
  void expect_string_of(WireBytes record) noexcept;
  void note_absences();
  void roll_back_row() noexcept;
  void set_draw(std::uint64_t draw) noexcept;

  void settle_padding(WireBytes record, std::int64_t record_number);
  void begin_packed(const PackedRecord& packed);
  void end_packed(const PackedRecord& packed, std::int64_t record_number);

  void decode_exactly(WireBytes record, std::int64_t record_number);
  void collect_entries(WireBytes record, std::int64_t record_number);
  void put_exactly(std::uint32_t slot, WireBytes feature, WireBytes record,
                   std::int64_t record_number);

  std::shared_ptr<const FeatureSchema> schema_;
  FindOrigin find_origin_;
  std::unique_ptr<MessageDecoder> message_;  // null if records are Examples
  std::vector<FeatureSlot> slots_;  // the extra last slot's successor is the record's first feature
  std::vector<ColumnBuilder> columns_;
  std::vector<ColumnBuilder*> images_;  // the columns of images
  bool needs_draws_ = false;
  std::vector<std::uint32_t> padded_;         // the slots of windows whose padding is told apart
  std::vector<std::uint32_t> packed_;         // the slots of packed features
  std::vector<std::size_t> tokens_;           // of a row, in each budget
  std::vector<PackedRecord> packed_records_;  // decoded so far
  std::vector<FoundFeature> entries_;
  // The rows that lack a feature, as in Column.
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

  // The string that the next placed record should hold.
  struct Expected {
    ColumnBuilder* column = nullptr;  // null: no string is expected
    std::size_t before = 0;           // bytes of the record before the string
  };
  Expected expected_;
  unsigned records_to_pass_ = 0;  // records to read without place() from now on
  unsigned pause_ = 0;            // the length of the last pause
};

}  // namespace tfrfast
