// The columns of a decoded batch, one per feature, in pooled memory; and the builder that fills one
// column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/pool.h"
#include "core/example/image_rows.h"
#include "core/example/list.h"
#include "core/example/schema.h"
#include "core/example/serialized_tensor.h"
#include "core/order/order.h"

namespace tfrfast {

// Owns its memory. A buffer that the layout does not use is empty. A buffer in use is never null,
// even when it holds no bytes.
struct Column {
  // Where the rows of a further level begin, of which a row of the level before holds any number.
  struct InnerSplits {
    PooledBuffer splits;  // rows + 1 int64
    std::size_t rows = 0;
  };

  std::string name;
  const Layout* layout = &kFixedLayout;
  ValueType type = ValueType::int64;
  std::size_t rows = 0;
  std::vector<std::int64_t>
      shape;                    // fixed and padded: of the whole column; sparse: the dense shape
  std::size_t value_count = 0;  // bytes: strings; raw: rows; fixed images: pictures; tensors: rows
                                // or steps; else numbers
  PooledBuffer values;          // numbers, or the strings end to end
  PooledBuffer offsets;         // bytes: value_count + 1 int64, where each string starts
  PooledBuffer row_splits;      // ragged: rows + 1 int64, where each row starts
  // messages: the levels inside a row, outermost first
  std::vector<InnerSplits> inner_splits;
  PooledBuffer indices;  // sparse: value_count pairs of int64, (row, column)
  // Set only if the decoder tracks presence: how many rows lack the feature and, if any do, a
  // bitmap with a set bit for each row that has the feature. An absent row is empty or holds the
  // default.
  std::size_t absent_rows = 0;
  PooledBuffer presence;
  std::size_t pictures = 0;  // image: of all rows. A row of ragged images is a picture.
  PooledBuffer crops;        // image: an ImageCrop for each picture
  PooledBuffer shapes;       // ragged images: height, width and channels of each, as int64
};

// Why a feature's values did not go into its column.
enum class Fit : std::uint8_t {
  ok,
  malformed,     // the wire bytes are not a list of the feature's kind
  wrong_count,   // not as many values as the shape has
  out_of_range,  // a value is outside the range of the column's type
  wrong_size,    // a raw byte string has the wrong size
  bad_image,     // an image cannot be decoded
  bad_tensor,    // a string is not a tensor of the feature's type and shape
  not_alone,     // the string is not the string that place_record() was called for
};

// Memory that at least doubles when it grows, and keeps its contents.
class GrowingBuffer {
 public:
  std::uint8_t* data() const noexcept { return buffer_.data(); }
  template <class T>
  T* as() const noexcept {
    return buffer_.as<T>();
  }
  // Grows to `bytes` or more and keeps the first `used` bytes. The first growth also covers the
  // size of recent batches. Growth covers `likely_bytes` too, up to 16 times `bytes`.
  void reserve(std::size_t bytes, std::size_t used, std::size_t likely_bytes = 0) {
    if (bytes > buffer_.capacity()) [[unlikely]]
      grow(bytes, used, likely_bytes);
  }
  std::size_t capacity() const noexcept { return buffer_.capacity(); }
  PooledBuffer take(std::size_t used);

 private:
  void grow(std::size_t bytes, std::size_t used, std::size_t likely_bytes);
  PooledBuffer buffer_;
  std::size_t expected_bytes_ = 0;
  bool varies_ = false;  // has grown while it held data
};

// A builder's contents after all rows were read. The layout turns the contents into a column.
struct FilledRows {
  const CompiledFeature& feature;
  std::size_t count = 0;
  std::size_t value_count = 0;   // not set if rows are alike
  std::size_t string_bytes = 0;  // bytes only: total over all values
  std::size_t longest = 0;       // length of the longest row, in values; not set if rows are alike
  GrowingBuffer& values;         // values, offsets and row_splits: as in Column
  GrowingBuffer& offsets;
  GrowingBuffer& row_splits;  // not used if rows are alike
  std::size_t packs = 0;      // packed, facts: rows of the column, and tokens of a row
  std::size_t width = 0;
  std::span<const PackedRecord> records;  // the records of packs

  Column start_column(std::size_t column_values) const;  // allocates nothing
  void move_values(Column& column);                      // moves the offsets too, if there are any
};

// Fills one column, row after row. If rows are alike, every row must be put. Otherwise a skipped
// row is empty. One thread at a time.
class ColumnBuilder {
 public:
  explicit ColumnBuilder(const CompiledFeature& feature)
      : feature_(&feature),
        rows_are_alike_(feature.spec.layout->rows_are_alike),
        is_scalar_(rows_are_alike_ && feature.row_values == 1) {
    if (feature.spec.image) images_ = std::make_unique<ImageRows>(*feature.spec.image);
    if (feature.spec.tensor) tensor_ = std::make_unique<SerializedTensor>();
  }

  void begin(std::size_t rows);  // drops earlier rows; `invalid` if memory cannot hold `rows`

  // Packed rows, after begin(): `packs` rows of `width` tokens. A record's values begin at the
  // place of begin_at(): nothing was put beyond it, and the gap becomes zeros. keep() then drops
  // all but `count` of the last record's values, from value `first` on.
  void begin_packs(std::size_t packs, std::size_t width);
  void begin_at(std::size_t place);
  void fill_packs() { begin_at(packs_ * width_); }
  void keep(std::size_t first, std::size_t count) noexcept;

  // Each put_ function puts a whole row. Rows are put in order, except after roll_back(). After any
  // result but `ok` the row must be rolled back. `record` contains the values; the bytes around the
  // values may be read, too.
  Fit put_packed_ints(std::size_t row, WireBytes varints, WireBytes record);
  Fit put_packed_floats(std::size_t row, WireBytes floats);
  Fit put_string(std::size_t row, WireBytes string);           // a list of one string
  Fit put_unpacked(std::size_t row, WireBytes tagged_values);  // of the feature's kind
  Fit put_empty(std::size_t row);                              // a list without values
  Fit put_list(std::size_t row, const FeatureList& list, WireBytes record);
  void put_default(std::size_t row);
  // Images only: sets the random number of the next row.
  void set_draw(std::uint64_t draw) noexcept { images_->set_draw(draw); }
  bool holds_images() const noexcept { return images_ != nullptr; }
  bool has_black() const noexcept { return images_->has_black(); }
  void roll_back(std::size_t row) noexcept;  // forgets the row's values
  // Puts zeros, or black pictures, for the steps of the last row that are not real. `is_real` has
  // an entry for each step, or is empty if all are real. Call it if the feature may_hold_padding().
  Fit settle_padding(std::size_t row, const std::vector<bool>& is_real);

  // Details of the last failed Fit: the number of values, the value out of range, or the number of
  // bytes.
  std::int64_t found() const noexcept { return found_; }
  // Why the last image or tensor could not be decoded.
  const std::string& problem() const noexcept {
    return images_ != nullptr ? images_->problem() : tensor_->problem();
  }

  // Returns where to read a record with one long string, so that the string lies where the column
  // needs it and is never copied. A copy takes a fifth of the processor time of a decoded batch of
  // photos. The string is expected `before` bytes after the record's beginning. The record's first
  // `before` bytes overwrite the end of the previous string, so take_place() must be called once
  // the row was put or rolled back, and before the next put. Null if there is no such place.
  std::uint8_t* place_record(std::size_t row, std::size_t before, std::size_t record_bytes);
  // Moves the string if it lies elsewhere in the record, and restores the overwritten bytes.
  void take_place() noexcept;

  // The last string that was put. Its memory may have been freed since.
  WireBytes last_string() const noexcept { return last_string_; }

  // The number of values in the last row that was put. Only if rows may differ.
  std::size_t last_count() const noexcept { return value_count_ - last_value_count_; }

  // If rows may differ, `rows` may exceed the rows that were begun. `records` are those of packs.
  Column finish(std::size_t rows, std::span<const PackedRecord> records = {});

 private:
  void mark_row(std::size_t row);
  template <class Number>
  Number* open_row(std::size_t row, std::size_t values);
  void close_row(std::size_t values);
  Fit put_ints(std::size_t row, std::span<const std::int64_t> ints);
  template <class Narrow>
  Fit put_narrow(std::size_t row, std::span<const std::int64_t> ints);
  Fit put_floats(std::size_t row, const std::uint8_t* floats, std::size_t count);
  Fit put_strings(std::size_t row, WireBytes tagged_strings);
  Fit put_image(std::size_t picture, WireBytes image);
  Fit put_tensor(std::size_t row, WireBytes tensor);
  Fit put_images(std::size_t row, WireBytes tagged_strings);
  void scale(float* values, std::size_t count) const noexcept;
  Fit put_whole(std::size_t row, WireBytes string, std::size_t strings);
  Fit append_string(std::size_t row, WireBytes string);
  std::size_t likely_bytes(std::size_t row, std::size_t bytes_so_far) const noexcept;
  Fit check_count(std::size_t values) noexcept;
  void start_rows_to(std::size_t row);

  // Whether each row is one string, which is stored as raw bytes, as pixels or as a tensor's
  // values.
  bool holds_whole_strings() const noexcept {
    return feature_->spec.type == ValueType::raw || images_ != nullptr || tensor_ != nullptr;
  }
  bool holds_strings() const noexcept { return feature_->spec.type == ValueType::bytes; }

  const CompiledFeature* feature_;
  bool rows_are_alike_;
  bool is_scalar_;
  std::size_t rows_ = 0;
  std::size_t next_row_ = 0;     // all rows before it have their start
  std::size_t value_count_ = 0;  // rows that differ, and strings: values put so far
  std::size_t data_bytes_ = 0;   // strings: bytes put so far
  std::size_t longest_ = 0;
  std::size_t packs_ = 0;
  std::size_t width_ = 0;
  std::size_t marked_row_ = 0;        // the last row that was put,
  std::size_t last_value_count_ = 0;  // and the totals before that row
  std::size_t last_data_bytes_ = 0;
  std::size_t last_longest_ = 0;
  std::size_t pictures_before_row_ = 0;  // and their values, if pictures have their own sizes
  std::size_t values_before_row_ = 0;
  std::int64_t found_ = 0;
  WireBytes last_string_;
  // The bytes that a placed record overwrites, and the offset of their end. Empty if no record is
  // placed.
  std::vector<std::uint8_t> covered_;
  std::size_t covered_end_ = 0;
  WireBytes placed_string_;
  GrowingBuffer values_;
  GrowingBuffer offsets_;
  GrowingBuffer row_splits_;
  std::vector<std::int64_t> scratch_;
  std::unique_ptr<ImageRows> images_;         // null unless the values are images
  std::unique_ptr<SerializedTensor> tensor_;  // null unless rows are serialized tensors
};

}  // namespace tfrfast
