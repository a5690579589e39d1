#include "core/example/message_decode.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "core/base/utf8.h"
#include "core/example/message_wire.h"
#include "core/example/varints.h"

namespace tfrfast {
namespace {

constexpr std::uint32_t kNone = MessageShape::kNone;
constexpr std::size_t kIndex = sizeof(std::int64_t);
constexpr std::uint32_t kEndGroup = 4;
constexpr std::size_t kManyVarints = 32;

void store(std::uint8_t* at, std::size_t bytes, std::uint64_t bits) noexcept {
  switch (bytes) {
    case 8:
      std::memcpy(at, &bits, 8);
      break;
    case 4: {
      const auto narrow = static_cast<std::uint32_t>(bits);
      std::memcpy(at, &narrow, 4);
      break;
    }
    default:
      *at = static_cast<std::uint8_t>(bits);
  }
}

// The bits of a field's value, from those on the wire.
std::uint64_t bits_of(FieldType type, std::uint64_t wire) noexcept {
  switch (type) {
    case FieldType::boolean:
      return wire != 0 ? 1 : 0;
    case FieldType::sint32: {
      const auto narrow = static_cast<std::uint32_t>(wire);
      return narrow >> 1 ^ (0 - (narrow & 1));
    }
    case FieldType::sint64:
      return wire >> 1 ^ (0 - (wire & 1));
    default:
      return wire;
  }
}

const std::string* name_in(const MessageField& field, std::int32_t number) noexcept {
  const auto found = std::ranges::lower_bound(field.names, number, {}, &EnumName::number);
  return found == field.names.end() || found->number != number ? nullptr : &found->name;
}

WireBytes wire_bytes(const std::string& text) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

bool is_packable(FieldType type) noexcept {
  return !is_string(type) && !is_message(type);
}

}  // namespace

const std::uint8_t* skip_value(std::uint32_t tag, const std::uint8_t* next, const std::uint8_t* end,
                               unsigned depth) noexcept {
  std::array<std::uint32_t, kMaxMessageDepth> groups;
  std::size_t open = 0;
  std::uint64_t ignored;
  std::size_t size;
  if (tag >> 3 == 0) return nullptr;
  for (;;) {
    switch (tag & 7) {
      case 0:
        next = read_value(next, end, ignored);
        break;
      case 1:
        next = read_bits(8, next, end, ignored);
        break;
      case 2:
        next = read_size(next, end, size);
        if (next != nullptr) next += size;
        break;
      case 3:
        if (depth + open >= kMaxMessageDepth) return nullptr;
        groups[open++] = tag >> 3;
        break;
      case kEndGroup:
        if (open == 0 || groups[--open] != tag >> 3) return nullptr;
        break;
      case 5:
        next = read_bits(4, next, end, ignored);
        break;
      default:
        return nullptr;
    }
    if (next == nullptr || open == 0) return next;
    next = read_tag(next, end, tag);
    if (next == nullptr) return nullptr;
  }
}

MessageDecoder::MessageDecoder(std::shared_ptr<const FeatureSchema> schema)
    : schema_(std::move(schema)),
      shape_(*schema_->message()),
      levels_(shape_.levels.size()),
      leaves_(shape_.leaves.size()),
      members_(shape_.oneofs) {
  for (std::uint32_t number = 0; number < leaves_.size(); ++number) {
    const MessageShape::LeafShape& leaf = shape_.leaves[number];
    if (leaf.value_bytes == 0) string_leaves_.push_back(number);
    if (leaf.slot == kNone || leaf.is_repeated) continue;
    const std::optional<DefaultValue>& value = (*schema_)[leaf.slot].spec.default_value;
    if (!value) continue;
    if (leaf.value_bytes == 0) {
      leaves_[number].default_string = wire_bytes(value->strings[0]);
    } else {
      std::memcpy(&leaves_[number].default_bits, value->numbers.data(), leaf.value_bytes);
    }
  }
  for (std::uint32_t level = 0; level < levels_.size(); ++level) {
    if (shape_.levels[level].key != kNone) {
      levels_[shape_.levels[level].parent].maps.push_back(level);
    }
  }
}

void MessageDecoder::begin() {
  for (LevelElements& level : levels_) level.count = 0;
  for (LeafValues& leaf : leaves_) {
    leaf.bytes = 0;
    leaf.strings.clear();
  }
}

void MessageDecoder::decode(WireBytes record, const RecordPlace& place) {
  if (record.size() >= kLongestMessage) complain_too_long(place, record.size());
  for (LevelElements& level : levels_) level.record_start = level.count;
  record_ = record;
  numbers_.clear();
  failed_at_ = nullptr;
  failure_ = "does not fit";
  open_element(0);
  const Next begin = record.data();
  if (read_message(0, begin, begin + record.size(), 0, 0) == nullptr) {
    const Next at = failed_at_ == nullptr ? begin : failed_at_;
    complain_no_message(place, shape_.message, static_cast<std::size_t>(at - begin), failure_);
  }
  for (const std::uint32_t map : levels_[0].maps) keep_last_entries(map);
  copy_strings();
}

// Returns null. The first failure names the place: it is the innermost.
MessageDecoder::Next MessageDecoder::fail(Next at) noexcept {
  if (failed_at_ == nullptr) failed_at_ = at;
  return nullptr;
}

// Reads the fields up to `end` or, of a group, up to its end.
MessageDecoder::Next MessageDecoder::read_message(std::uint32_t number, Next next, Next end,
                                                  unsigned depth, std::uint32_t group) {
  const Node& node = shape_.nodes[number];
  while (next != end) {
    const Next field = next;
    std::uint32_t tag;
    next = read_tag(next, end, tag);
    if (next == nullptr) return fail(field);
    if ((tag & 7) == kEndGroup) return group != 0 && tag >> 3 == group ? next : fail(field);
    if (const FieldShape* const entry = node.find(tag >> 3)) {
      next = read_entry(node, *entry, tag, next, end, depth);
    } else {
      if (node.is_map_entry) saw_unknown_ = true;
      next = skip_value(tag, next, end, depth);
    }
    if (next == nullptr) return fail(field);
  }
  return group == 0 ? next : fail(end);
}

inline MessageDecoder::Next MessageDecoder::read_entry(const Node& node, const FieldShape& entry,
                                                       std::uint32_t tag, Next next, Next end,
                                                       unsigned depth) {
  const unsigned wire_type = tag & 7;
  std::uint64_t wire;
  if (wire_type != entry.wire_type) {
    if (wire_type == 2 && entry.field.repeated && is_packable(entry.field.type)) {
      return read_packed(node, entry, next, end);
    }
    if (node.is_map_entry) saw_unknown_ = true;
    return skip_value(tag, next, end, depth);
  }
  switch (wire_type) {
    case 0:
      next = read_value(next, end, wire);
      break;
    case 1:
      next = read_bits(8, next, end, wire);
      break;
    case 5:
      next = read_bits(4, next, end, wire);
      break;
    default:
      if (!is_message(entry.field.type)) return read_string(entry, next, end);
      if (!entry.field.repeated) mark_present(entry);
      if (entry.child != kNone) return read_child(entry, next, end, depth);
      return skip_value(tag, next, end, depth);
  }
  if (next != nullptr) put(node, entry, bits_of(entry.field.type, wire));
  return next;
}

MessageDecoder::Next MessageDecoder::read_child(const FieldShape& entry, Next next, Next end,
                                                unsigned depth) {
  if (depth >= kMaxMessageDepth) {
    failure_ = "is nested too deeply to fit";
    return nullptr;
  }
  std::uint32_t group = 0;
  if (entry.field.type == FieldType::group) {
    group = entry.field.number;
  } else {
    std::size_t size;
    next = read_size(next, end, size);
    if (next == nullptr) return nullptr;
    end = next + size;
  }
  if (!entry.field.repeated) return read_message(entry.child, next, end, depth + 1, group);
  const bool saw_unknown = saw_unknown_;
  saw_unknown_ = false;
  open_element(entry.level);
  const LevelElements& level = levels_[entry.level];
  next = read_message(entry.child, next, end, depth + 1, group);
  if (next == nullptr) return nullptr;
  for (const std::uint32_t map : level.maps) keep_last_entries(map);
  // Protobuf takes such an entry for an unknown field of the message.
  if (saw_unknown_ && entry.field.is_map()) cut(entry.level, level.count - 1);
  saw_unknown_ = saw_unknown;
  return next;
}

MessageDecoder::Next MessageDecoder::read_packed(const Node& node, const FieldShape& entry,
                                                 Next next, Next end) {
  std::size_t size;
  next = read_size(next, end, size);
  if (next == nullptr) return nullptr;
  const WireBytes run{next, size};
  end = next + size;
  const FieldType type = entry.field.type;
  const bool is_plain = entry.values != kNone && entry.level != kNone && entry.names == kNone &&
                        !entry.field.is_closed;
  if (entry.wire_type != 0) {
    const unsigned item = entry.wire_type == 1 ? 8 : 4;
    if (size % item != 0) return nullptr;
    if (is_plain) {
      LevelElements& level = levels_[entry.level];
      GrowingBuffer& values = leaves_[entry.values].values;
      values.reserve(level.count * item + size, level.count * item);
      if (size != 0) std::memcpy(values.data() + level.count * item, next, size);
      level.count += size / item;
      return end;
    }
  } else if (is_plain && size >= kManyVarints) {
    const std::size_t space = count_varints(run);
    LevelElements& level = levels_[entry.level];
    GrowingBuffer& values = leaves_[entry.values].values;
    const std::size_t item = shape_.leaves[entry.values].value_bytes;
    values.reserve((level.count + space) * item, level.count * item);
    const bool is_direct = type == FieldType::int64 || type == FieldType::uint64;
    if (!is_direct && scratch_.size() < space) scratch_.resize(space);
    auto* const out = is_direct ? values.as<std::int64_t>() + level.count : scratch_.data();
    if (decode_varints(run, record_, out, space) != static_cast<std::ptrdiff_t>(space)) {
      return nullptr;
    }
    if (!is_direct) {
      std::uint8_t* to = values.data() + level.count * item;
      for (std::size_t i = 0; i < space; ++i, to += item) {
        store(to, item, bits_of(type, static_cast<std::uint64_t>(out[i])));
      }
    }
    level.count += space;
    return end;
  }
  while (next != end) {
    std::uint64_t wire;
    next = entry.wire_type == 0 ? read_value(next, end, wire)
                                : read_bits(entry.wire_type == 1 ? 8 : 4, next, end, wire);
    if (next == nullptr) return nullptr;
    put(node, entry, bits_of(type, wire));
  }
  return end;
}

MessageDecoder::Next MessageDecoder::read_string(const FieldShape& entry, Next next, Next end) {
  std::size_t size;
  next = read_size(next, end, size);
  if (next == nullptr) return nullptr;
  const WireBytes string{next, size};
  if (entry.field.checks_utf8 && !is_utf8(string)) {
    failure_ = "is a string that is not UTF-8, which does not fit";
    return nullptr;
  }
  mark_present(entry);
  if (entry.values == kNone) return next + size;
  if (entry.level != kNone) open_element(entry.level);
  leaves_[entry.values].strings.back() = string;
  return next + size;
}

// Puts a value that is no string.
void MessageDecoder::put(const Node& node, const FieldShape& entry, std::uint64_t bits) {
  const MessageField& field = entry.field;
  const auto number = static_cast<std::int32_t>(bits);
  if (field.is_closed && name_in(field, number) == nullptr) {
    saw_unknown_ = saw_unknown_ || node.is_map_entry;
    return;
  }
  mark_present(entry);
  if (entry.level != kNone) open_element(entry.level);
  if (entry.values != kNone) {
    const MessageShape::LeafShape& leaf = shape_.leaves[entry.values];
    const std::size_t element = levels_[leaf.level].count - 1;
    store(leaves_[entry.values].values.data() + element * leaf.value_bytes, leaf.value_bytes, bits);
  }
  if (entry.names != kNone) {
    const std::string* name = name_in(field, number);
    if (name == nullptr) name = &numbers_.emplace_back(std::to_string(number));
    leaves_[entry.names].strings.back() = wire_bytes(*name);
  }
}

inline void MessageDecoder::mark_present(const FieldShape& entry) {
  if (entry.oneof != kNone && members_[entry.oneof] != &entry) {
    if (members_[entry.oneof] != nullptr) clear(*members_[entry.oneof]);
    members_[entry.oneof] = &entry;
  }
  if (entry.presence == kNone) return;
  const std::uint32_t level = shape_.leaves[entry.presence].level;
  leaves_[entry.presence].values.data()[levels_[level].count - 1] = 1;
}

// Begins an element, with the defaults of its leaves.
void MessageDecoder::open_element(std::uint32_t number) {
  const std::size_t element = levels_[number].count++;
  for (const std::uint32_t child : shape_.levels[number].levels) {
    LevelElements& level = levels_[child];
    level.splits.reserve((element + 1) * kIndex, element * kIndex);
    level.splits.as<std::int64_t>()[element] = static_cast<std::int64_t>(level.count);
  }
  for (const std::uint32_t each : shape_.levels[number].leaves) {
    LeafValues& leaf = leaves_[each];
    const std::size_t item = shape_.leaves[each].value_bytes;
    if (item == 0) {
      leaf.strings.push_back(leaf.default_string);
    } else {
      leaf.values.reserve((element + 1) * item, element * item);
      store(leaf.values.data() + element * item, item, leaf.default_bits);
    }
  }
  for (const std::uint32_t each : shape_.levels[number].oneofs) members_[each] = nullptr;
}

// Of several entries of a map with one key, the last counts.
void MessageDecoder::keep_last_entries(std::uint32_t number) {
  const LevelElements& level = levels_[number];
  const std::size_t parent = levels_[shape_.levels[number].parent].count - 1;
  const auto first = static_cast<std::size_t>(level.splits.as<std::int64_t>()[parent]);
  const std::size_t count = level.count - first;
  if (count < 2) return;
  read_keys(number, first);
  const auto is_less = [&](std::size_t a, std::size_t b) {
    return std::ranges::lexicographical_compare(keys_[a], keys_[b]);
  };
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, is_less);
  std::vector<bool> is_last(count, true);
  bool are_different = true;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    if (is_less(order[i], order[i + 1])) continue;
    is_last[order[i]] = are_different = false;
  }
  if (are_different) return;
  std::vector<Elements> kept;
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_last[i]) continue;
    if (i == 0 || !is_last[i - 1]) kept.push_back({first + i, first + i});
    ++kept.back().end;
  }
  keep(number, first, kept);
}

// Sets keys_ to those of a map's entries. Strings are copied once, because the record's memory may
// change meanwhile.
void MessageDecoder::read_keys(std::uint32_t number, std::size_t first) {
  const LevelElements& level = levels_[number];
  const std::uint32_t key = shape_.levels[number].key;
  const LeafValues& leaf = leaves_[key];
  keys_.clear();
  if (const std::size_t item = shape_.leaves[key].value_bytes; item != 0) {
    for (std::size_t each = first; each < level.count; ++each) {
      keys_.emplace_back(leaf.values.data() + each * item, item);
    }
    return;
  }
  key_bytes_.clear();
  const auto strings = std::span(leaf.strings).subspan(first - level.record_start);
  for (const WireBytes string : strings) {
    key_bytes_.insert(key_bytes_.end(), string.begin(), string.end());
  }
  const std::uint8_t* next = key_bytes_.data();
  for (const WireBytes string : strings) {
    keys_.emplace_back(next, string.size());
    next += string.size();
  }
}

// Drops the elements of a level from `first` on that are in no run.
void MessageDecoder::keep(std::uint32_t number, std::size_t first,
                          const std::vector<Elements>& kept) {
  LevelElements& level = levels_[number];
  for (const std::uint32_t child : shape_.levels[number].levels) {
    auto* const splits = levels_[child].splits.as<std::int64_t>();
    const auto start_of = [&](std::size_t element) {
      return element == level.count ? levels_[child].count
                                    : static_cast<std::size_t>(splits[element]);
    };
    const std::size_t start = start_of(first);
    std::vector<Elements> inner;
    for (const Elements& run : kept) inner.push_back({start_of(run.begin), start_of(run.end)});
    std::size_t to = first, next = start;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const std::size_t moved = inner[i].begin - next;
      for (std::size_t each = kept[i].begin; each < kept[i].end; ++each) {
        splits[to++] = splits[each] - static_cast<std::int64_t>(moved);
      }
      next += inner[i].end - inner[i].begin;
    }
    keep(child, start, inner);
  }
  std::size_t to = first;
  for (const Elements& run : kept) {
    for (const std::uint32_t each : shape_.levels[number].leaves) {
      const std::size_t item = shape_.leaves[each].value_bytes;
      LeafValues& leaf = leaves_[each];
      if (item == 0) {
        WireBytes* const strings = leaf.strings.data();
        std::copy(strings + (run.begin - level.record_start),
                  strings + (run.end - level.record_start), strings + (to - level.record_start));
      } else if (run.begin != run.end) {
        std::uint8_t* const values = leaf.values.data();
        std::memmove(values + to * item, values + run.begin * item, (run.end - run.begin) * item);
      }
    }
    to += run.end - run.begin;
  }
  for (const std::uint32_t each : shape_.levels[number].leaves) {
    if (shape_.leaves[each].value_bytes == 0) {
      leaves_[each].strings.resize(to - level.record_start);
    }
  }
  level.count = to;
}

// Drops all elements of a level but the first `count`, which are at least those of other records.
void MessageDecoder::cut(std::uint32_t number, std::size_t count) {
  LevelElements& level = levels_[number];
  if (count == level.count) return;
  for (const std::uint32_t child : shape_.levels[number].levels) {
    cut(child, static_cast<std::size_t>(levels_[child].splits.as<std::int64_t>()[count]));
  }
  for (const std::uint32_t each : shape_.levels[number].leaves) {
    if (shape_.leaves[each].value_bytes == 0) {
      leaves_[each].strings.resize(count - level.record_start);
    }
  }
  level.count = count;
}

// Makes a field of the current element as if it had not come.
void MessageDecoder::clear(const FieldShape& entry) {
  if (entry.level != kNone) {
    const std::size_t parent = levels_[shape_.levels[entry.level].parent].count - 1;
    cut(entry.level,
        static_cast<std::size_t>(levels_[entry.level].splits.as<std::int64_t>()[parent]));
    return;
  }
  if (entry.oneof != kNone) members_[entry.oneof] = nullptr;
  for (const std::uint32_t each : {entry.values, entry.names, entry.presence}) {
    if (each == kNone) continue;
    const MessageShape::LeafShape& leaf = shape_.leaves[each];
    LeafValues& state = leaves_[each];
    if (leaf.value_bytes == 0) {
      state.strings.back() = state.default_string;
    } else {
      store(state.values.data() + (levels_[leaf.level].count - 1) * leaf.value_bytes,
            leaf.value_bytes, state.default_bits);
    }
  }
  if (entry.child == kNone) return;
  for (const FieldShape& inner : shape_.nodes[entry.child].entries) clear(inner);
}

void MessageDecoder::copy_strings() {
  for (const std::uint32_t each : string_leaves_) {
    LeafValues& leaf = leaves_[each];
    std::size_t place = levels_[shape_.leaves[each].level].record_start;
    std::size_t bytes = leaf.bytes;
    for (const WireBytes string : leaf.strings) bytes += string.size();
    leaf.values.reserve(bytes, leaf.bytes);
    leaf.offsets.reserve((place + leaf.strings.size() + 1) * kIndex, place * kIndex);
    for (const WireBytes string : leaf.strings) {
      leaf.offsets.as<std::int64_t>()[place++] = static_cast<std::int64_t>(leaf.bytes);
      if (!string.empty()) {
        std::memcpy(leaf.values.data() + leaf.bytes, string.data(), string.size());
      }
      leaf.bytes += string.size();
    }
    leaf.strings.clear();
  }
}

std::vector<Column> MessageDecoder::finish() {
  for (std::size_t number = 1; number < levels_.size(); ++number) {
    const std::size_t parents = levels_[shape_.levels[number].parent].count;
    LevelElements& level = levels_[number];
    level.splits.reserve((parents + 1) * kIndex, parents * kIndex);
    level.splits.as<std::int64_t>()[parents] = static_cast<std::int64_t>(level.count);
  }
  std::vector<Column> columns(schema_->size());
  for (std::uint32_t leaf = 0; leaf < leaves_.size(); ++leaf) {
    const std::uint32_t slot = shape_.leaves[leaf].slot;
    if (slot != kNone) columns[slot] = finish_leaf(leaf);
  }
  begin();
  return columns;
}

Column MessageDecoder::finish_leaf(std::uint32_t number) {
  const MessageShape::LeafShape& leaf = shape_.leaves[number];
  const FeatureSpec& spec = (*schema_)[leaf.slot].spec;
  Column column;
  column.name = spec.name;
  column.layout = spec.layout;
  column.type = spec.type;
  column.rows = levels_[0].count;
  column.value_count = levels_[leaf.level].count;
  if (leaf.level == 0) column.shape = {static_cast<std::int64_t>(column.rows)};
  LeafValues& state = leaves_[number];
  if (leaf.value_bytes == 0) {
    state.offsets.reserve((column.value_count + 1) * kIndex, column.value_count * kIndex);
    state.offsets.as<std::int64_t>()[column.value_count] = static_cast<std::int64_t>(state.bytes);
    column.offsets = state.offsets.take((column.value_count + 1) * kIndex);
    column.values = state.values.take(state.bytes);
  } else {
    column.values = state.values.take(column.value_count * leaf.value_bytes);
  }
  // From the innermost level to the outermost. Several columns may have the same splits.
  for (std::uint32_t level = leaf.level; level != 0; level = shape_.levels[level].parent) {
    const std::uint32_t parent = shape_.levels[level].parent;
    const std::size_t bytes = (levels_[parent].count + 1) * kIndex;
    PooledBuffer splits(bytes);
    std::memcpy(splits.data(), levels_[level].splits.data(), bytes);
    if (parent == 0) {
      column.row_splits = std::move(splits);
    } else {
      column.inner_splits.insert(column.inner_splits.begin(),
                                 {std::move(splits), levels_[parent].count});
    }
  }
  return column;
}

}  // namespace tfrfast
