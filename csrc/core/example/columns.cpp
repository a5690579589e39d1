#include "core/example/columns.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/example/varints.h"

namespace tfrfast {

namespace {

constexpr std::size_t kNoRow = ~std::size_t{0};
constexpr std::size_t kWorthCounting = std::size_t{16} << 10;
constexpr double kManyBytes = 1e15;

// Allocates `expected` bytes, or only `needed` bytes if memory is short.
PooledBuffer expected_or_needed(std::size_t expected, std::size_t needed) {
  if (expected > needed) {
    try {
      return PooledBuffer(expected);
    } catch (const OutOfMemory&) {
    }
  }
  return PooledBuffer(needed);
}

}  // namespace

void GrowingBuffer::grow(std::size_t bytes, std::size_t used, std::size_t likely_bytes) {
  std::size_t wanted = std::max(expected_bytes_, 2 * buffer_.capacity());
  varies_ = varies_ || buffer_.data() != nullptr;
  // The first rows may be longer than the rest.
  constexpr std::size_t kMaxFactor = 16;
  if (bytes < max_memory_bytes() / kMaxFactor) {
    wanted = std::max(wanted, std::min(likely_bytes, kMaxFactor * bytes));
  }
  wanted = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, max_memory_bytes()));
  PooledBuffer larger = expected_or_needed(wanted, bytes);
  if (used != 0) std::memcpy(larger.data(), buffer_.data(), used);
  buffer_ = std::move(larger);
}

PooledBuffer GrowingBuffer::take(std::size_t used) {
  constexpr std::size_t kSpareShare = 16;
  const std::size_t spare = varies_ ? used / kSpareShare : 0;
  expected_bytes_ = std::max(used + spare, expected_bytes_ - expected_bytes_ / kSpareShare);
  if (buffer_.data() == nullptr) return PooledBuffer(1);
  return std::exchange(buffer_, PooledBuffer());
}

void ColumnBuilder::begin(std::size_t rows) {
  rows_ = rows;
  next_row_ = value_count_ = data_bytes_ = longest_ = packs_ = width_ = 0;
  marked_row_ = kNoRow;
  covered_.clear();
  if (images_ != nullptr) images_->begin(rows);
  const std::size_t row_values = rows_are_alike_ ? feature_->row_values : 1;
  const std::size_t widest = std::max<std::size_t>(feature_->value_bytes, sizeof(std::int64_t));
  std::size_t values, bytes;
  if (__builtin_mul_overflow(rows, row_values, &values) ||
      __builtin_mul_overflow(values + 1, widest, &bytes) || bytes >> 48 != 0) {
    throw Error(ErrorKind::invalid, "Feature '" + feature_->spec.name + "': a batch of " +
                                        std::to_string(rows) +
                                        " rows is more than memory can hold.");
  }
  if (holds_strings()) {
    offsets_.reserve((values + 1) * sizeof(std::int64_t), 0);
  } else if (rows_are_alike_) {
    values_.reserve(values * feature_->value_bytes, 0);
  }
  if (!rows_are_alike_) {
    const std::size_t pictures = images_ == nullptr ? 1 : feature_->row_values;
    row_splits_.reserve((rows * pictures + 1) * sizeof(std::int64_t), 0);
  }
}

void ColumnBuilder::begin_packs(std::size_t packs, std::size_t width) {
  packs_ = packs;
  width_ = width;
  std::size_t values, bytes;
  if (__builtin_mul_overflow(packs, width, &values) ||
      // The last record may be longer than its place, before it is cut.
      __builtin_add_overflow(values, kWorthCounting, &values) ||
      __builtin_mul_overflow(values, feature_->value_bytes, &bytes) || bytes >> 48 != 0) {
    throw Error(ErrorKind::invalid,
                "Feature '" + feature_->spec.name + "': a batch of " + std::to_string(packs) +
                    " rows of " + std::to_string(width) + " tokens is more than memory can hold.");
  }
  values_.reserve(bytes, 0);
}

void ColumnBuilder::begin_at(std::size_t place) {
  if (place > value_count_) {
    const std::size_t item = feature_->value_bytes;
    values_.reserve(place * item, value_count_ * item);
    std::memset(values_.data() + value_count_ * item, 0, (place - value_count_) * item);
  }
  value_count_ = place;
}

void ColumnBuilder::keep(std::size_t first, std::size_t count) noexcept {
  const std::size_t item = feature_->value_bytes;
  std::uint8_t* const values = values_.data() + last_value_count_ * item;
  if (first != 0) std::memmove(values, values + first * item, count * item);
  value_count_ = last_value_count_ + count;
}

// Row starts are written when a later row needs them, so a missing feature costs nothing.
void ColumnBuilder::start_rows_to(std::size_t row) {
  if (next_row_ > row) return;
  row_splits_.reserve((row + 1) * sizeof(std::int64_t), next_row_ * sizeof(std::int64_t));
  auto* splits = row_splits_.as<std::int64_t>();
  std::fill(splits + next_row_, splits + row + 1, static_cast<std::int64_t>(value_count_));
  next_row_ = row + 1;
}

void ColumnBuilder::mark_row(std::size_t row) {
  marked_row_ = row;
  last_value_count_ = value_count_;
  last_data_bytes_ = data_bytes_;
  last_longest_ = longest_;
  if (!rows_are_alike_) start_rows_to(row);
}

template <class Number>
Number* ColumnBuilder::open_row(std::size_t row, std::size_t values) {
  if (rows_are_alike_) return values_.as<Number>() + row * feature_->row_values;
  mark_row(row);
  values_.reserve((value_count_ + values) * sizeof(Number), value_count_ * sizeof(Number));
  return values_.as<Number>() + value_count_;
}

void ColumnBuilder::close_row(std::size_t values) {
  if (rows_are_alike_) return;
  value_count_ = last_value_count_ + values;
  longest_ = std::max(longest_, values);
}

void ColumnBuilder::roll_back(std::size_t row) noexcept {
  if (images_ != nullptr && feature_->row_values > 1) {
    if (rows_are_alike_ || pictures_before_row_ != row * feature_->row_values) return;
    value_count_ = values_before_row_;
    next_row_ = std::min(next_row_, pictures_before_row_);
    return;
  }
  if (marked_row_ != row) return;
  value_count_ = last_value_count_;
  data_bytes_ = last_data_bytes_;
  longest_ = last_longest_;
  placed_string_ = {};
}

Fit ColumnBuilder::check_count(std::size_t values) noexcept {
  const bool fits =
      feature_->is_required ? values == feature_->row_values : values % feature_->row_values == 0;
  if (fits) return Fit::ok;
  found_ = static_cast<std::int64_t>(values);
  return Fit::wrong_count;
}

Fit ColumnBuilder::put_packed_ints(std::size_t row, WireBytes varints, WireBytes record) {
  const bool direct = feature_->spec.type == ValueType::int64;
  if (is_scalar_ && direct) {
    if (decode_one_varint(varints, record, values_.as<std::int64_t>()[row])) return Fit::ok;
    found_ = static_cast<std::int64_t>(count_varints(varints));
    const bool cut_short = !varints.empty() && varints.back() >= 0x80;
    return found_ == 1 || cut_short ? Fit::malformed : Fit::wrong_count;
  }
  // Each value takes at least one byte. A long list is counted before space is made.
  std::size_t space = varints.size();
  if (rows_are_alike_) {
    space = feature_->row_values;
  } else if (space > kWorthCounting) {
    space = count_varints(varints);
  }
  if (!direct && scratch_.size() < space) scratch_.resize(space);
  std::int64_t* out = direct ? open_row<std::int64_t>(row, space) : scratch_.data();
  const std::ptrdiff_t count = decode_varints(varints, record, out, space);
  if (count < 0) {
    if (count == kBadVarints) return Fit::malformed;
    found_ = static_cast<std::int64_t>(count_varints(varints));
    return Fit::wrong_count;
  }
  const auto values = static_cast<std::size_t>(count);
  if (!direct) return put_ints(row, {out, values});
  if (const Fit fit = check_count(values); fit != Fit::ok) return fit;
  close_row(values);
  return Fit::ok;
}

template <class Narrow>
Fit ColumnBuilder::put_narrow(std::size_t row, std::span<const std::int64_t> ints) {
  Narrow* out = open_row<Narrow>(row, ints.size());
  for (const std::int64_t value : ints) {
    const auto narrowed = static_cast<Narrow>(value);
    if (static_cast<std::int64_t>(narrowed) != value) [[unlikely]] {
      found_ = value;
      return Fit::out_of_range;
    }
    *out++ = narrowed;
  }
  close_row(ints.size());
  return Fit::ok;
}

Fit ColumnBuilder::put_ints(std::size_t row, std::span<const std::int64_t> ints) {
  if (const Fit fit = check_count(ints.size()); fit != Fit::ok) return fit;
  switch (feature_->spec.type) {
    case ValueType::int64:
      return put_narrow<std::int64_t>(row, ints);
    case ValueType::int32:
      return put_narrow<std::int32_t>(row, ints);
    case ValueType::int16:
      return put_narrow<std::int16_t>(row, ints);
    case ValueType::int8:
      return put_narrow<std::int8_t>(row, ints);
    case ValueType::uint32:
      return put_narrow<std::uint32_t>(row, ints);
    case ValueType::uint16:
      return put_narrow<std::uint16_t>(row, ints);
    case ValueType::uint8:
      return put_narrow<std::uint8_t>(row, ints);
    case ValueType::boolean:
      return put_narrow<bool>(row, ints);
    case ValueType::bytes:
    case ValueType::float32:
    case ValueType::float64:
    case ValueType::uint64:
    case ValueType::raw:
    case ValueType::image:
    case ValueType::tensor:
      break;
  }
  return Fit::malformed;
}

Fit ColumnBuilder::put_floats(std::size_t row, const std::uint8_t* floats, std::size_t count) {
  if (const Fit fit = check_count(count); fit != Fit::ok) return fit;
  float* out = open_row<float>(row, count);
  if (count != 0) std::memcpy(out, floats, count * sizeof(float));
  scale(out, count);
  close_row(count);
  return Fit::ok;
}

void ColumnBuilder::scale(float* values, std::size_t count) const noexcept {
  if (feature_->spec.scaling) feature_->spec.scaling->apply(values, count);
}

Fit ColumnBuilder::settle_padding(std::size_t row, const std::vector<bool>& is_real) {
  if (images_ != nullptr) {
    return images_->settle_black(is_real, values_.data()) ? Fit::ok : Fit::bad_image;
  }
  const std::size_t values = rows_are_alike_ ? feature_->row_values : last_count();
  if (is_real.empty() || values % is_real.size() != 0) return Fit::ok;
  const std::size_t step = values / is_real.size();
  float* out = values_.as<float>() + (rows_are_alike_ ? row * values : last_value_count_);
  for (const bool real : is_real) {
    if (!real) std::fill_n(out, step, 0.0f);
    out += step;
  }
  return Fit::ok;
}

Fit ColumnBuilder::put_packed_floats(std::size_t row, WireBytes floats) {
  return put_floats(row, floats.data(), floats.size() / sizeof(float));
}

Fit ColumnBuilder::put_unpacked(std::size_t row, WireBytes tagged_values) {
  WireReader reader(tagged_values);
  switch (feature_->kind) {
    case ListKind::none:
      break;
    case ListKind::bytes:
      return put_strings(row, tagged_values);
    case ListKind::ints: {
      scratch_.clear();
      std::uint64_t value;
      while (!reader.at_end()) {
        if (!reader.take(varint_tag(1)) || !reader.read_varint(value)) return Fit::malformed;
        scratch_.push_back(static_cast<std::int64_t>(value));
      }
      return put_ints(row, scratch_);
    }
    case ListKind::floats: {
      std::vector<std::uint32_t> floats;
      floats.reserve(tagged_values.size() / 5);
      std::uint32_t bits;
      while (!reader.at_end()) {
        if (!reader.take(fixed32_tag(1)) || !reader.read_fixed32(bits)) return Fit::malformed;
        floats.push_back(bits);
      }
      return put_floats(row, reinterpret_cast<const std::uint8_t*>(floats.data()), floats.size());
    }
  }
  return Fit::malformed;
}

// Estimates the bytes of all rows' strings.
std::size_t ColumnBuilder::likely_bytes(std::size_t row, std::size_t bytes_so_far) const noexcept {
  constexpr double kSpare = 1.0625;
  const double share = static_cast<double>(rows_) / static_cast<double>(row + 1);
  return static_cast<std::size_t>(
      std::min(static_cast<double>(bytes_so_far) * share * kSpare, kManyBytes));
}

Fit ColumnBuilder::append_string(std::size_t row, WireBytes string) {
  constexpr std::size_t kOffset = sizeof(std::int64_t);
  offsets_.reserve((value_count_ + 2) * kOffset, (value_count_ + 1) * kOffset);
  const std::size_t bytes = data_bytes_ + string.size();
  if (covered_.empty()) [[likely]] {
    if (bytes > values_.capacity()) values_.reserve(bytes, data_bytes_, likely_bytes(row, bytes));
    if (!string.empty()) std::memcpy(values_.data() + data_bytes_, string.data(), string.size());
  } else {
    if (placed_string_.data() != nullptr) return Fit::not_alone;
    placed_string_ = string;
  }
  offsets_.as<std::int64_t>()[value_count_] = static_cast<std::int64_t>(data_bytes_);
  data_bytes_ = bytes;
  ++value_count_;
  last_string_ = string;
  return Fit::ok;
}

std::uint8_t* ColumnBuilder::place_record(std::size_t row, std::size_t before,
                                          std::size_t record_bytes) {
  if (before == 0 || before > data_bytes_) return nullptr;
  // The string may begin earlier than expected.
  const std::size_t bytes = data_bytes_ + record_bytes;
  if (bytes > values_.capacity()) values_.reserve(bytes, data_bytes_, likely_bytes(row, bytes));
  std::uint8_t* const place = values_.data() + data_bytes_ - before;
  covered_.assign(place, place + before);
  covered_end_ = data_bytes_;
  placed_string_ = {};
  return place;
}

void ColumnBuilder::take_place() noexcept {
  std::uint8_t* const end = values_.data() + covered_end_;
  if (!placed_string_.empty() && placed_string_.data() != end) {
    std::memmove(end, placed_string_.data(), placed_string_.size());
  }
  std::memcpy(end - covered_.size(), covered_.data(), covered_.size());
  covered_.clear();
}

Fit ColumnBuilder::put_string(std::size_t row, WireBytes string) {
  if (holds_whole_strings()) return put_whole(row, string, 1);
  if (const Fit fit = check_count(1); fit != Fit::ok) return fit;
  mark_row(row);
  const Fit fit = append_string(row, string);
  close_row(1);
  return fit;
}

Fit ColumnBuilder::put_strings(std::size_t row, WireBytes tagged_strings) {
  if (images_ != nullptr && feature_->row_values > 1) return put_images(row, tagged_strings);
  const bool whole = holds_whole_strings();
  if (!whole) mark_row(row);
  WireReader reader(tagged_strings);
  WireBytes string;
  std::size_t count = 0;
  for (; !reader.at_end(); ++count) {
    if (!reader.take(bytes_tag(1)) || !reader.read_bytes(string)) return Fit::malformed;
    if (whole) continue;
    if (const Fit fit = append_string(row, string); fit != Fit::ok) return fit;
  }
  if (whole) return put_whole(row, string, count);
  if (const Fit fit = check_count(count); fit != Fit::ok) return fit;
  close_row(count);
  return Fit::ok;
}

Fit ColumnBuilder::put_whole(std::size_t row, WireBytes string, std::size_t strings) {
  if (const Fit fit = check_count(strings); fit != Fit::ok) return fit;
  if (images_ != nullptr) {
    images_->begin_row(row);
    return put_image(row, string);
  }
  if (tensor_ != nullptr) return put_tensor(row, string);
  if (string.size() != feature_->value_bytes) {
    found_ = static_cast<std::int64_t>(string.size());
    return Fit::wrong_size;
  }
  if (!string.empty()) {
    std::memcpy(values_.data() + row * string.size(), string.data(), string.size());
  }
  return Fit::ok;
}

Fit ColumnBuilder::put_tensor(std::size_t row, WireBytes string) {
  if (!tensor_->find(string, *feature_->spec.tensor)) return Fit::bad_tensor;
  const std::size_t bytes = tensor_->bytes();
  if (rows_are_alike_) {
    tensor_->write(values_.data() + row * bytes);
    return Fit::ok;
  }
  mark_row(row);
  const std::size_t place = value_count_ * feature_->value_bytes;
  values_.reserve(place + bytes, place, likely_bytes(row, place + bytes));
  tensor_->write(values_.data() + place);
  close_row(bytes / feature_->value_bytes);
  return Fit::ok;
}

Fit ColumnBuilder::put_images(std::size_t row, WireBytes tagged_strings) {
  const std::size_t pictures = feature_->row_values;
  WireBytes string;
  std::size_t count = 0;
  for (WireReader reader(tagged_strings); !reader.at_end(); ++count) {
    if (!reader.take(bytes_tag(1)) || !reader.read_bytes(string)) return Fit::malformed;
  }
  if (const Fit fit = check_count(count); fit != Fit::ok) return fit;
  pictures_before_row_ = row * pictures;
  values_before_row_ = value_count_;
  images_->begin_row(row);
  WireReader reader(tagged_strings);
  for (std::size_t picture = row * pictures; count != 0; ++picture, --count) {
    reader.take(bytes_tag(1));
    reader.read_bytes(string);
    if (const Fit fit = put_image(picture, string); fit != Fit::ok) return fit;
  }
  return Fit::ok;
}

Fit ColumnBuilder::put_image(std::size_t picture, WireBytes image) {
  if (!images_->begin_picture(picture, image)) return Fit::bad_image;
  const std::size_t value_bytes = feature_->value_bytes;
  std::size_t place = picture * value_bytes;
  if (!rows_are_alike_) {
    mark_row(picture);
    place = value_count_ * value_bytes;
    const std::size_t bytes = place + images_->result_bytes();
    values_.reserve(bytes, place, likely_bytes(picture / feature_->row_values, bytes));
  }
  if (!images_->finish_picture(picture, image, values_.data(), place)) return Fit::bad_image;
  close_row(images_->result_bytes() / value_bytes);
  return Fit::ok;
}

Fit ColumnBuilder::put_empty(std::size_t row) {
  if (const Fit fit = check_count(0); fit != Fit::ok) return fit;
  mark_row(row);
  return Fit::ok;
}

Fit ColumnBuilder::put_list(std::size_t row, const FeatureList& list, WireBytes record) {
  switch (list.form) {
    case ListForm::malformed:
      break;
    case ListForm::empty:
      return put_empty(row);
    case ListForm::unpacked:
      return put_unpacked(row, list.values);
    case ListForm::packed:
      if (feature_->kind == ListKind::floats) return put_packed_floats(row, list.values);
      return put_packed_ints(row, list.values, record);
  }
  return Fit::malformed;
}

void ColumnBuilder::put_default(std::size_t row) {
  if (!rows_are_alike_) return;
  const DefaultValue& value = *feature_->spec.default_value;
  if (holds_strings()) {
    mark_row(row);
    for (const std::string& string : value.strings) {
      append_string(row, {reinterpret_cast<const std::uint8_t*>(string.data()), string.size()});
    }
  } else if (!value.numbers.empty()) {
    std::uint8_t* const out = values_.data() + row * value.numbers.size();
    std::memcpy(out, value.numbers.data(), value.numbers.size());
    scale(reinterpret_cast<float*>(out), feature_->row_values);
  }
}

Column ColumnBuilder::finish(std::size_t rows, std::span<const PackedRecord> records) {
  if (holds_strings()) {
    offsets_.as<std::int64_t>()[value_count_] = static_cast<std::int64_t>(data_bytes_);
  }
  if (images_ != nullptr && !rows_are_alike_) rows *= feature_->row_values;
  if (!rows_are_alike_) start_rows_to(rows);
  FilledRows filled{*feature_, rows,        value_count_, data_bytes_, longest_, values_,
                    offsets_,  row_splits_, packs_,       width_,      records};
  Column column = feature_->spec.layout->finish(filled);
  if (images_ != nullptr) {
    column.pictures = rows_are_alike_ ? rows * feature_->row_values : rows;
    if (!rows_are_alike_) column.shapes = images_->shapes(rows);
    column.crops = images_->take_crops();
  }
  return column;
}

Column FilledRows::start_column(std::size_t column_values) const {
  Column column;
  column.name = feature.spec.name;
  column.layout = feature.spec.layout;
  column.type = feature.spec.type;
  column.rows = count;
  column.value_count = column_values;
  return column;
}

void FilledRows::move_values(Column& column) {
  const bool strings = column.type == ValueType::bytes;
  column.values = values.take(strings ? string_bytes : column.value_count * feature.value_bytes);
  if (strings) column.offsets = offsets.take((column.value_count + 1) * sizeof(std::int64_t));
}

}  // namespace tfrfast
