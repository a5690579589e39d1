#include "core/example/decode.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/example/entries.h"

namespace tfrfast {
namespace {

// Reads a length as a varint. Longer encodings than writers use are accepted.
inline bool read_usual_length(const std::uint8_t*& next, const std::uint8_t* end,
                              std::size_t& length) noexcept {
  if (next == end) return false;
  if (*next < 0x80) [[likely]] {
    length = *next++;
    return true;
  }
  std::size_t result = 0;
  for (unsigned shift = 0; shift < 35 && next != end; shift += 7) {
    const std::uint8_t byte = *next++;
    result |= static_cast<std::size_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      length = result;
      return result < 0x80000000u;
    }
  }
  return false;
}

// A length of 128 to 16383 as a varint, little-endian.
inline std::uint64_t two_byte_varint(std::size_t length) noexcept {
  return (length & 0x7f) | 0x80 | length >> 7 << 8;
}

// Placing a shorter record costs more than copying its string. A longer record may not fit in
// memory.
constexpr std::size_t kMinPlacedBytes = std::size_t{16} << 10;
constexpr std::size_t kMaxPlacedBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxBytesBefore = std::size_t{4} << 10;
constexpr unsigned kMaxPause = 255;

// The number of record bytes before the string. At least the record's size if the string lies
// outside the record.
std::size_t bytes_before(WireBytes string, WireBytes record) noexcept {
  return reinterpret_cast<std::uintptr_t>(string.data()) -
         reinterpret_cast<std::uintptr_t>(record.data());
}

// This opening is longer than any entry, so nothing matches.
constexpr std::uint32_t kNeverOpens = 0xffffffff;

constexpr std::size_t kShortHeader = 5;
constexpr std::size_t kLongHeader = 8;

// A Feature that fills the rest of its entry and holds one list, of one packed run or one string,
// begins with
//      feature length | list tag | list length | 0x0a | run length
// The entry's end determines every length. So instead of reading three lengths one after the other,
// this function compares the whole header with its only possible value: five bytes if every length
// takes one byte, eight if every length takes two. Returns the header's size, or 0 if the header
// differs.
inline std::size_t usual_header_bytes(const std::uint8_t* value, std::size_t left,
                                      std::uint8_t list_tag,
                                      const std::uint8_t* record_end) noexcept {
  if (left == 0) return 0;
  const std::uint64_t header = load64_before(value, record_end);
  if (left - kShortHeader < 0x80 - kShortHeader + 1) [[likely]] {
    const std::uint64_t expected = (left - 1) | std::uint64_t{list_tag} << 8 | (left - 3) << 16 |
                                   std::uint64_t{bytes_tag(1)} << 24 | (left - 5) << 32;
    return (header ^ expected) << 24 == 0 ? kShortHeader : 0;
  }
  if (left - kLongHeader - 0x80 < 0x4000 - 0x80 - kLongHeader) {
    const std::uint64_t expected = two_byte_varint(left - 2) | std::uint64_t{list_tag} << 16 |
                                   two_byte_varint(left - 5) << 24 |
                                   std::uint64_t{bytes_tag(1)} << 40 |
                                   two_byte_varint(left - 8) << 48;
    return header == expected ? kLongHeader : 0;
  }
  return 0;
}

// Which steps of a feature's window are real, as the record says beside the feature. Empty if the
// record says nothing, or not about as many steps.
std::vector<bool> real_steps(WireBytes record, const std::string& name) {
  WireBytes beside;
  for_each_entry(record, [&](WireBytes key, WireBytes feature) {
    constexpr std::string_view kValid = "/valid";
    const std::string_view text(reinterpret_cast<const char*>(key.data()), key.size());
    if (text.size() == name.size() + kValid.size() && text.ends_with(kValid) &&
        text.starts_with(name)) {
      beside = feature;
    }
  });
  std::vector<bool> is_real;
  ListKind kind = ListKind::none;
  if (!read_list_kind(beside, kind) || kind != ListKind::ints) return is_real;
  const FeatureList list = find_list(beside, kind);
  if (list.form != ListForm::packed) return is_real;  // Steps write no other form
  WireReader reader(list.values);
  for (std::uint64_t value; reader.read_varint(value);) is_real.push_back(value != 0);
  return is_real;
}

}  // namespace

BatchDecoder::BatchDecoder(std::shared_ptr<const FeatureSchema> schema, FindOrigin find_origin,
                           bool tracks_presence)
    : schema_(std::move(schema)), find_origin_(std::move(find_origin)), entries_(schema_->size()) {
  if (schema_->message() != nullptr) {
    message_ = std::make_unique<MessageDecoder>(schema_);
    return;
  }
  const auto features = static_cast<std::uint32_t>(schema_->size());
  slots_.reserve(features + 1);
  columns_.reserve(features);
  for (std::uint32_t slot = 0; slot < features; ++slot) {
    const CompiledFeature& feature = (*schema_)[slot];
    const bool fixed = feature.is_required;
    FeatureSlot compiled;
    compiled.opening = feature.opening.data();
    compiled.opening_bytes =
        feature.is_fact() ? kNeverOpens : static_cast<std::uint32_t>(feature.opening_bytes);
    compiled.whole_words = static_cast<std::uint32_t>(feature.opening.size() - 1);
    compiled.last_word = feature.opening.back();
    const std::size_t last_bytes = feature.opening_bytes - 8 * compiled.whole_words;
    std::memset(&compiled.last_mask, 0, sizeof compiled.last_mask);
    std::memset(&compiled.last_mask, 0xff, last_bytes);
    compiled.successor = (slot + 1) % features;
    compiled.list_tag = bytes_tag(static_cast<unsigned>(feature.kind));
    compiled.kind = feature.kind;
    compiled.fixed = fixed;
    slots_.push_back(compiled);
    columns_.emplace_back(feature);
    fixed_features_ += fixed;
  }
  // The first record has no predecessor.
  FeatureSlot first;
  first.opening_bytes = kNeverOpens;
  first.successor = features == 0 ? 0 : features;
  slots_.push_back(first);
  for (ColumnBuilder& column : columns_) {
    if (column.holds_images()) images_.push_back(&column);
  }
  for (std::uint32_t slot = 0; slot < features; ++slot) {
    if ((*schema_)[slot].is_packed()) packed_.push_back(slot);
    if ((*schema_)[slot].may_hold_padding()) padded_.push_back(slot);
  }
  needs_draws_ = schema_->needs_draws();
  if (tracks_presence) absences_.resize(features);
}

void BatchDecoder::begin(std::size_t rows, std::size_t packs,
                         std::span<const std::int64_t> tokens) {
  rows_ = rows;
  next_row_ = 0;
  if (message_ != nullptr) message_->begin();
  for (FeatureSlot& slot : slots_) slot.seen = 0;
  for (ColumnBuilder& column : columns_) column.begin(rows);
  for (Absence& absence : absences_) absence = Absence();
  tokens_.assign(tokens.begin(), tokens.end());
  packed_records_.clear();
  for (std::uint32_t slot = 0; slot < schema_->size(); ++slot) {
    const CompiledFeature& feature = (*schema_)[slot];
    const std::size_t budget = feature.spec.budget;
    if (feature.spec.layout == &kStartsLayout) {
      columns_[slot].begin_packs(rows, tokens.size() + 2);
    } else if (!tokens.empty() && (feature.is_packed() || feature.is_fact())) {
      if (budget >= tokens.size()) {
        throw Error(ErrorKind::invalid, "The rows have no budget " + std::to_string(budget) +
                                            " for feature '" + feature.spec.name + "'.");
      }
      columns_[slot].begin_packs(packs, tokens_[budget]);
    }
  }
}

void BatchDecoder::decode(std::span<const WireBytes> records,
                          std::span<const std::int64_t> record_numbers,
                          std::span<const std::uint64_t> draws,
                          std::span<const PackedRecord> packed) {
  if (!packed_.empty() && (tokens_.empty() || packed.size() != records.size())) {
    throw Error(ErrorKind::invalid, "Records are packed by a Loader alone.");
  }
  if (records.size() > rows_ - next_row_) {
    throw Error(ErrorKind::out_of_range, "The batch was begun for " + std::to_string(rows_) +
                                             " rows; row " + std::to_string(rows_) +
                                             " does not exist.");
  }
  if (needs_draws_ && draws.size() != records.size()) {
    throw Error(ErrorKind::invalid,
                "An image that is cropped or flipped at random takes its draws from the order of a "
                "Loader. Use crop=\"center\" and flip=False here, or a Loader.");
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::int64_t record_number =
        record_numbers.empty() ? static_cast<std::int64_t>(next_row_) : record_numbers[i];
    if (message_ != nullptr) {
      message_->decode(records[i], {record_number, &find_origin_});
      ++next_row_;
      continue;
    }
    if (!draws.empty()) set_draw(draws[i]);
    if (!packed.empty()) begin_packed(packed[i]);
    fixed_seen_ = 0;
    seen_ = 0;
    if (decode_usual(records[i]) != Attempt::done) [[unlikely]] {
      roll_back_row();
      fixed_seen_ = seen_ = 0;
      decode_exactly(records[i], record_number);
    }
    if (!padded_.empty()) settle_padding(records[i], record_number);
    if (!packed.empty()) end_packed(packed[i], record_number);
    end_row(record_number);
    if (records[i].size() >= kMinPlacedBytes) expect_string_of(records[i]);
  }
}

void BatchDecoder::settle_padding(WireBytes record, std::int64_t record_number) {
  for (const std::uint32_t slot : padded_) {
    if (slots_[slot].seen != next_row_ + 1) continue;
    const CompiledFeature& feature = (*schema_)[slot];
    ColumnBuilder& column = columns_[slot];
    if (column.holds_images() && !column.has_black()) continue;
    std::vector<bool> is_real = real_steps(record, feature.spec.name);
    if (column.holds_images() && is_real.size() != feature.row_values) is_real.clear();
    if (column.settle_padding(next_row_, is_real) != Fit::ok) {
      complain_image({record_number, &find_origin_}, feature.spec, column.problem());
    }
  }
}

void BatchDecoder::begin_packed(const PackedRecord& packed) {
  for (const std::uint32_t slot : packed_) {
    const std::size_t budget = (*schema_)[slot].spec.budget;
    columns_[slot].begin_at(packed.row * tokens_[budget] + packed.columns[budget]);
  }
}

// Keeps the values that were counted.
void BatchDecoder::end_packed(const PackedRecord& packed, std::int64_t record_number) {
  for (const std::uint32_t slot : packed_) {
    const FeatureSpec& spec = (*schema_)[slot].spec;
    ColumnBuilder& column = columns_[slot];
    const std::size_t length = packed.lengths[spec.budget];
    const std::size_t first = static_cast<std::size_t>(packed.piece) * tokens_[spec.budget];
    const bool is_there = slots_[slot].seen == next_row_ + 1;
    const std::size_t found = is_there ? column.last_count() : 0;
    const bool goes_on = (packed.goes_on >> spec.budget & 1) != 0;
    if (goes_on ? found < first + length : found != first + length) {
      complain_length({record_number, &find_origin_}, spec, found, first + length);
    }
    if (is_there) column.keep(first, length);
  }
  packed_records_.push_back(packed);
}

// Finishes a row whose features have all been put.
void BatchDecoder::end_row(std::int64_t record_number) {
  if (fixed_seen_ != fixed_features_) fill_missing(record_number);
  if (seen_ != absences_.size() && !absences_.empty()) note_absences();
  ++next_row_;
}

void BatchDecoder::expect_string_of(WireBytes record) noexcept {
  expected_ = {};
  for (std::uint32_t slot = 0; slot < schema_->size(); ++slot) {
    if (slots_[slot].seen != next_row_ || (*schema_)[slot].spec.type != ValueType::bytes) continue;
    const WireBytes string = columns_[slot].last_string();
    const std::size_t before = bytes_before(string, record);
    if (string.size() > record.size() / 2 && before <= kMaxBytesBefore) {
      expected_ = {&columns_[slot], before};
    }
  }
}

std::uint8_t* BatchDecoder::place(std::size_t record_bytes) {
  if (expected_.column == nullptr || next_row_ == rows_) return nullptr;
  if (record_bytes < kMinPlacedBytes || record_bytes > kMaxPlacedBytes) return nullptr;
  if (records_to_pass_ != 0) {
    --records_to_pass_;
    return nullptr;
  }
  return expected_.column->place_record(next_row_, expected_.before, record_bytes);
}

bool BatchDecoder::decode_placed(WireBytes record, std::int64_t record_number, std::uint64_t draw) {
  set_draw(draw);
  fixed_seen_ = 0;
  seen_ = 0;
  if (decode_usual(record) != Attempt::done) {
    roll_back_row();
    give_up_place();
    return false;
  }
  if (!padded_.empty()) settle_padding(record, record_number);
  ColumnBuilder* const column = expected_.column;
  column->take_place();
  end_row(record_number);
  // If this record had no long string, the next record may.
  const std::size_t before = bytes_before(column->last_string(), record);
  if (before <= kMaxBytesBefore) expected_.before = before;
  pause_ /= 2;
  return true;
}

void BatchDecoder::give_up_place() noexcept {
  expected_.column->take_place();
  records_to_pass_ = pause_ = std::min(2 * pause_ + 1, kMaxPause);
}

// Returns whether the slot's opening comes next.
inline bool BatchDecoder::opens_with(const std::uint8_t* next, const std::uint8_t* entry_end,
                                     const std::uint8_t* record_end,
                                     const FeatureSlot& slot) noexcept {
  const std::size_t whole_bytes = 8 * std::size_t{slot.whole_words};
  if (slot.opening_bytes >= static_cast<std::size_t>(entry_end - next)) return false;
  if (static_cast<std::size_t>(record_end - next) < whole_bytes + 8) [[unlikely]] {
    return std::memcmp(next, slot.opening, slot.opening_bytes) == 0;
  }
  std::uint64_t word;
  std::memcpy(&word, next + whole_bytes, sizeof word);
  std::uint64_t difference = (word ^ slot.last_word) & slot.last_mask;
  for (std::size_t i = 0; i < slot.whole_words; ++i) {
    std::memcpy(&word, next + 8 * i, sizeof word);
    difference |= word ^ slot.opening[i];
  }
  return difference == 0;
}

BatchDecoder::Attempt BatchDecoder::decode_usual(WireBytes record) {
  const std::uint8_t* next = record.data();
  const std::uint8_t* const end = next + record.size();
  std::size_t length;
  if (record.empty() || *next++ != bytes_tag(1) || !read_usual_length(next, end, length) ||
      length != static_cast<std::size_t>(end - next)) {
    return Attempt::unusual;
  }
  auto previous = static_cast<std::uint32_t>(schema_->size());
  while (next != end) {
    if (*next++ != bytes_tag(1) || !read_usual_length(next, end, length) ||
        length > static_cast<std::size_t>(end - next)) {
      return Attempt::unusual;
    }
    const std::uint8_t* const entry_end = next + length;
    std::uint32_t slot = slots_[previous].successor;
    if (opens_with(next, entry_end, end, slots_[slot])) [[likely]] {
      next += slots_[slot].opening_bytes;
    } else {
      if (next == entry_end || *next++ != bytes_tag(1) ||
          !read_usual_length(next, entry_end, length) ||
          length >= static_cast<std::size_t>(entry_end - next)) {
        return Attempt::unusual;
      }
      slot = schema_->find({next, length});
      next += length;
      if (*next++ != bytes_tag(2)) return Attempt::unusual;
      if (slot == FeatureSchema::kUnknown) {
        if (!read_usual_length(next, entry_end, length) ||
            length != static_cast<std::size_t>(entry_end - next)) {
          return Attempt::unusual;
        }
        next = entry_end;
        continue;
      }
      slots_[previous].successor = slot;
    }
    if (put_usual(slot, next, entry_end, record) != Attempt::done) return Attempt::unusual;
    previous = slot;
    next = entry_end;
  }
  return Attempt::done;
}

// `value` points at the length of the entry's Feature.
inline BatchDecoder::Attempt BatchDecoder::put_usual(std::uint32_t number,
                                                     const std::uint8_t* value,
                                                     const std::uint8_t* entry_end,
                                                     WireBytes record) {
  FeatureSlot& slot = slots_[number];
  const std::uint64_t stamp = next_row_ + 1;
  if (slot.seen == stamp) return Attempt::unusual;
  slot.seen = stamp;
  fixed_seen_ += slot.fixed;
  ++seen_;
  ColumnBuilder& column = columns_[number];
  const auto left = static_cast<std::size_t>(entry_end - value);
  // The key comes before the value, so the eight bytes before the record's end belong to the
  // record.
  const std::size_t header =
      usual_header_bytes(value, left, slot.list_tag, record.data() + record.size());
  Fit fit;
  if (header != 0) [[likely]] {
    const WireBytes values{value + header, left - header};
    switch (slot.kind) {
      case ListKind::ints:
        fit = column.put_packed_ints(next_row_, values, record);
        break;
      case ListKind::floats:
        if (values.size() % sizeof(float) != 0) return Attempt::unusual;
        fit = column.put_packed_floats(next_row_, values);
        break;
      default:
        fit = column.put_string(next_row_, values);
        break;
    }
  } else {
    // The header has another form. The Feature fills its entry, and the list the Feature.
    std::size_t length;
    if (!read_usual_length(value, entry_end, length) || length == 0 ||
        length != static_cast<std::size_t>(entry_end - value) || *value != slot.list_tag) {
      return Attempt::unusual;
    }
    const FeatureList list = find_list({value, length}, slot.kind);
    if (list.form == ListForm::malformed || list.end != entry_end) return Attempt::unusual;
    fit = column.put_list(next_row_, list, record);
  }
  return fit == Fit::ok ? Attempt::done : Attempt::unusual;
}

void BatchDecoder::fill_missing(std::int64_t record_number) {
  for (std::uint32_t slot = 0; slot < schema_->size(); ++slot) {
    if (!slots_[slot].fixed || slots_[slot].seen == next_row_ + 1) continue;
    const FeatureSpec& spec = (*schema_)[slot].spec;
    if (!spec.default_value) complain_missing({record_number, &find_origin_}, spec);
    columns_[slot].put_default(next_row_);
  }
}

// Marks the features that this row lacks.
void BatchDecoder::note_absences() {
  const std::size_t bytes = rows_ / 8 + 1;
  for (std::uint32_t slot = 0; slot < absences_.size(); ++slot) {
    if (slots_[slot].seen == next_row_ + 1) continue;
    Absence& absence = absences_[slot];
    if (absence.rows++ == 0) {
      absence.presence = PooledBuffer(bytes);
      std::memset(absence.presence.data(), 0xff, bytes);
    }
    absence.presence.data()[next_row_ / 8] &= static_cast<std::uint8_t>(~(1u << next_row_ % 8));
  }
}

void BatchDecoder::set_draw(std::uint64_t draw) noexcept {
  for (ColumnBuilder* const images : images_) images->set_draw(draw);
}

void BatchDecoder::roll_back_row() noexcept {
  for (std::uint32_t slot = 0; slot < schema_->size(); ++slot) {
    if (slots_[slot].seen != next_row_ + 1) continue;
    columns_[slot].roll_back(next_row_);
    slots_[slot].seen = 0;
  }
}

void BatchDecoder::decode_exactly(WireBytes record, std::int64_t record_number) {
  collect_entries(record, record_number);
  for (std::uint32_t slot = 0; slot < schema_->size(); ++slot) {
    if (!entries_[slot].present) continue;
    slots_[slot].seen = next_row_ + 1;
    ++seen_;
    put_exactly(slot, entries_[slot].feature, record, record_number);
  }
}

void BatchDecoder::collect_entries(WireBytes record, std::int64_t record_number) {
  const RecordPlace place{record_number, &find_origin_};
  if (record.size() >= kLongestMessage) complain_too_long(place, record.size());
  if (schema_->is_of_examples_alone()) {
    const RecordKind kind = kind_of(record);
    if (kind != RecordKind::example) complain_no_example(place, kind);
  }
  std::fill(entries_.begin(), entries_.end(), FoundFeature{});
  const std::uint8_t* const stopped = for_each_entry(record, [&](WireBytes key, WireBytes feature) {
    const std::uint32_t slot = schema_->find(key);
    if (slot == FeatureSchema::kUnknown) return;
    const FeatureSpec& spec = (*schema_)[slot].spec;
    ListKind kind;
    if (!read_list_kind(feature, kind)) complain_no_list(place, spec);
    // An empty Feature replaces an earlier one of the same name, but not for features with a shape.
    const bool shaped = spec.layout->has_shape || (*schema_)[slot].is_required;
    if (kind != ListKind::none || !shaped) entries_[slot] = {feature, kind != ListKind::none};
  });
  if (stopped != nullptr) {
    complain_malformed(place, static_cast<std::size_t>(stopped - record.data()));
  }
}

void BatchDecoder::put_exactly(std::uint32_t slot, WireBytes feature, WireBytes record,
                               std::int64_t record_number) {
  const CompiledFeature& compiled = (*schema_)[slot];
  ColumnBuilder& column = columns_[slot];
  const RecordPlace place{record_number, &find_origin_};
  ListKind kind;
  if (!read_list_kind(feature, kind)) complain_no_list(place, compiled.spec);
  Fit fit = Fit::ok;
  if (kind != ListKind::none) {
    if (kind != compiled.kind) complain_kind(place, compiled.spec, kind);
    fit = column.put_list(next_row_, find_list(feature, kind), record);
  }
  if (fit != Fit::ok) complain_misfit(place, compiled, fit, column);
}

std::vector<Column> BatchDecoder::finish() {
  if (message_ != nullptr) {
    rows_ = next_row_ = 0;
    return message_->finish();
  }
  std::vector<Column> columns;
  columns.reserve(columns_.size());
  for (const std::uint32_t slot : packed_) columns_[slot].fill_packs();
  for (ColumnBuilder& column : columns_) {
    columns.push_back(column.finish(next_row_, packed_records_));
  }
  for (std::size_t slot = 0; slot < absences_.size(); ++slot) {
    columns[slot].absent_rows = absences_[slot].rows;
    columns[slot].presence = std::move(absences_[slot].presence);
  }
  rows_ = next_row_ = 0;
  return columns;
}

}  // namespace tfrfast
