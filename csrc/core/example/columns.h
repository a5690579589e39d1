// The columns of a decoded batch, one for each feature, in pooled memory, and the builder of a
// column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/pool.h"
#include "core/example/list.h"
#include "core/example/schema.h"

namespace tfrfast {

// Owns its memory. Buffers that the layout does not use are empty. A buffer in use is never null,
// even when it holds nothing.
struct Column {
  std::string name;
  const Layout* layout = &kFixedLayout;
  ValueType type = ValueType::int64;
  std::size_t rows = 0;
  std::vector<std::int64_t>
      shape;                    // fixed and padded: of the whole column; sparse: the dense shape
  std::size_t value_count = 0;  // strings for bytes, rows for raw, else numbers
  PooledBuffer values;          // numbers, or the strings' bytes end to end
  PooledBuffer offsets;         // bytes: value_count + 1 int64, where each string starts
  PooledBuffer row_splits;      // ragged: rows + 1 int64, where each row starts
  PooledBuffer indices;         // sparse: value_count pairs of int64, (row, column)
  // If the decoder was asked for it: how many rows lack the feature, and, if any do, a bit for each
  // row that says whether it has it. Such a row is empty, or holds the default.
  std::size_t absent_rows = 0;
  PooledBuffer presence;
};

// Why a feature's values did not go into its column.
enum class Fit : std::uint8_t {
  ok,
  malformed,     // the wire bytes are not a list of the feature's kind
  wrong_count,   // not as many values as the shape has
  out_of_range,  // a value that the column's type cannot hold
  wrong_size,    // a raw byte string of another size
  not_alone,     // another string than the one that place_record() was called for
};

// Memory that at least doubles when it grows, and keeps what it holds.
class GrowingBuffer {
 public:
  std::uint8_t* data() const noexcept { return buffer_.data(); }
  template <class T>
  T* as() const noexcept {
    return buffer_.as<T>();
  }
  // Makes room for `bytes` in all, and keeps the first `used`. The first time it makes room for
  // about as much as was used before any of the last takes. Later it makes room for `likely_bytes`
  // if that is not many times as much.
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
  bool varies_ = false;  // it has grown while it was used
};

// What a builder has collected when all rows are read. The layout makes a column of it.
struct FilledRows {
  const CompiledFeature& feature;
  std::size_t count = 0;
  std::size_t value_count = 0;   // unless rows are alike
  std::size_t string_bytes = 0;  // of bytes: of all values together
  std::size_t longest = 0;       // row, in values; unless rows are alike
  GrowingBuffer& values;         // this and the following as in Column
  GrowingBuffer& offsets;
  GrowingBuffer& row_splits;  // unless rows are alike

  Column start_column(std::size_t column_values) const;  // one without memory
  void move_values(Column& column);                      // and offsets, if it has any
};

// Fills one column, row after row. If rows are alike, each of them must be put. Otherwise a row
// that is passed over is empty. One thread.
class ColumnBuilder {
 public:
  explicit ColumnBuilder(const CompiledFeature& feature) noexcept
      : feature_(&feature),
        rows_are_alike_(feature.spec.layout->rows_are_alike),
        is_scalar_(rows_are_alike_ && feature.row_values == 1) {}

  void begin(std::size_t rows);  // drops what was there; throws `invalid` past what memory can hold

  // Each of these puts a whole row. Rows must be put in order, except after roll_back(). After any
  // result but `ok` the row must be rolled back. `record` contains the values: bytes around them
  // may be read, too.
  Fit put_packed_ints(std::size_t row, WireBytes varints, WireBytes record);
  Fit put_packed_floats(std::size_t row, WireBytes floats);
  Fit put_string(std::size_t row, WireBytes string);           // a list of one string
  Fit put_unpacked(std::size_t row, WireBytes tagged_values);  // of the feature's kind
  Fit put_empty(std::size_t row);                              // a list without values
  Fit put_list(std::size_t row, const FeatureList& list, WireBytes record);  // any of these
  void put_default(std::size_t row);
  void roll_back(std::size_t row) noexcept;  // forgets what was put into the row

  // What the last Fit other than `ok` found: the number of values, the value that does not fit, or
  // the number of bytes.
  std::int64_t found() const noexcept { return found_; }

  // For a record that has one long string: where to read it, so that the string lies where the
  // column needs it and is not copied. It is expected `before` bytes after the record's beginning.
  // Those bytes then lie over the end of the last string, so take_place() must be called once the
  // row was put or rolled back, and before another is. Null if there is no such place.
  std::uint8_t* place_record(std::size_t row, std::size_t before, std::size_t record_bytes);
  // Moves the string if it is elsewhere in the record, and puts back what the record lay over.
  void take_place() noexcept;

  // The string that was put last. It may be gone.
  WireBytes last_string() const noexcept { return last_string_; }

  // How many values the row has that was put last. Not for rows that are alike.
  std::size_t last_count() const noexcept { return value_count_ - last_value_count_; }

  // Unless rows are alike, there may be more than were begun.
  Column finish(std::size_t rows);

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
  Fit put_raw(std::size_t row, WireBytes string, std::size_t strings);
  Fit append_string(std::size_t row, WireBytes string);
  std::size_t likely_bytes(std::size_t row, std::size_t bytes_so_far) const noexcept;
  Fit check_count(std::size_t values) noexcept;
  void start_rows_to(std::size_t row);

  bool holds_strings() const noexcept { return feature_->spec.type == ValueType::bytes; }

  const CompiledFeature* feature_;
  bool rows_are_alike_;
  bool is_scalar_;
  std::size_t rows_ = 0;
  std::size_t next_row_ = 0;     // the starts of all rows before it are known
  std::size_t value_count_ = 0;  // variable rows and strings: values put so far
  std::size_t data_bytes_ = 0;   // strings: bytes put so far
  std::size_t longest_ = 0;
  std::size_t marked_row_ = 0;        // the row that was put last,
  std::size_t last_value_count_ = 0;  // and what there was before it
  std::size_t last_data_bytes_ = 0;
  std::size_t last_longest_ = 0;
  std::int64_t found_ = 0;
  WireBytes last_string_;
  // What a placed record lies over, and where that ends. Empty if none was placed.
  std::vector<std::uint8_t> covered_;
  std::size_t covered_end_ = 0;
  WireBytes placed_string_;
  GrowingBuffer values_;
  GrowingBuffer offsets_;
  GrowingBuffer row_splits_;
  std::vector<std::int64_t> scratch_;
};

}  // namespace tfrfast
