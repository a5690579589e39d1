#include "core/steps/cut_record.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/base/encoding.h"
#include "core/base/error.h"
#include "core/example/entries.h"

namespace tfrfast {
namespace {

constexpr EncodedKind kEncoding{"axis of steps", "tfSA"};
constexpr std::string_view kFlatValues = "/ragged_flat_values";
constexpr std::string_view kRowLengths = "/ragged_row_lengths_";
constexpr unsigned kFeatureLists = 2;  // of a SequenceExample; its context is 1, as in an Example
constexpr std::uint64_t kMaxSteps = std::uint64_t{1} << 31;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorKind::feature, why);
}

std::string quoted(std::string_view name) {
  return "feature '" + std::string(name) + "'";
}

std::string_view text_of(WireBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A feature along the axis, with its values counted.
struct CountedFeature {
  std::string_view name;
  StepForm form = StepForm::bytes;
  WireBytes list;
  std::uint64_t count = 0;
  std::uint64_t value_bytes = 0;  // of each value; 0 if sizes differ
};

StepForm form_of(ListKind kind, ListForm form) {
  if (kind == ListKind::bytes) return StepForm::bytes;
  const bool packed = form == ListForm::packed;
  if (kind == ListKind::floats) return packed ? StepForm::packed_floats : StepForm::floats;
  return packed ? StepForm::packed_ints : StepForm::ints;
}

// Skips one value. False if no value follows.
bool skip_value(WireReader& reader, StepForm form) noexcept {
  WireBytes bytes;
  std::uint32_t fixed;
  std::uint64_t number;
  switch (form) {
    case StepForm::bytes:
      return reader.take(bytes_tag(1)) && reader.read_bytes(bytes);
    case StepForm::packed_floats:
      return reader.read_fixed32(fixed);
    case StepForm::floats:
      return reader.take(fixed32_tag(1)) && reader.read_fixed32(fixed);
    case StepForm::packed_ints:
      return reader.read_varint(number);
    default:
      return reader.take(varint_tag(1)) && reader.read_varint(number);
  }
}

// Counts the values by reading each.
void count_values(CountedFeature& found) {
  if (found.form == StepForm::packed_floats) {
    found.count = found.list.size() / 4;
    found.value_bytes = 4;
    return;
  }
  WireReader reader(found.list);
  bool have_one_size = true;
  while (!reader.at_end()) {
    const std::size_t before = reader.bytes_left();
    if (!skip_value(reader, found.form))
      refuse("has a list that is cut off in " + quoted(found.name));
    const std::uint64_t bytes = before - reader.bytes_left();
    if (found.count == 0) found.value_bytes = bytes;
    have_one_size = have_one_size && bytes == found.value_bytes;
    ++found.count;
  }
  if (!have_one_size) found.value_bytes = 0;
}

constexpr auto code_axis = [](auto& coder, auto& axis) {
  coder.list(axis.prefixes, [&](auto& prefix) { coder.string(prefix); });
  coder.by_name(axis.features, [&](auto& values) { coder.number(values); });
};

class Cutting {
 public:
  Cutting(WireBytes record, const StepAxis& axis) : record_(record), axis_(axis) {}

  CutRecord run() {
    if (has_lists()) return cut_lists();
    find_features();
    for (auto& [name, found] : found_) count_values(found);
    CutRecord cut;
    cut.steps = static_cast<std::uint32_t>(count_steps());
    cut.rest = std::move(rest_);
    if (cut.steps == 0) return cut;
    for (const auto& [name, found] : found_) cut.features.push_back(cut_feature(found, cut.steps));
    return cut;
  }

 private:
  // Whether the record is a SequenceExample, in which features along the axis are lists of
  // Features.
  bool has_lists() {
    bool has_any = false;
    for_each_whole_entry(
        record_,
        [&](WireBytes, WireBytes key, WireBytes list) {
          has_any = true;
          const std::string_view name = text_of(key);
          if (axis_.has(name) && !lists_.emplace(name, list).second) {
            refuse("has two lists of " + quoted(name));
          }
        },
        kFeatureLists);
    return has_any;
  }

  CutRecord cut_lists() {
    CutRecord cut;
    const auto refuse_rest = [&](const std::uint8_t* stopped) {
      if (stopped == nullptr) return;
      refuse("is not a SequenceExample: it breaks off at byte " +
             std::to_string(stopped - record_.data()));
    };
    refuse_rest(
        for_each_whole_entry(record_, [](WireBytes, WireBytes, WireBytes) {}, kFeatureLists));
    refuse_rest(for_each_whole_entry(record_, [&](WireBytes entry, WireBytes key, WireBytes) {
      if (lists_.contains(text_of(key))) cut.named_twice.push_back(text_of(key));
      cut.rest.push_back(entry);
    }));
    std::string_view decides;
    for (const auto& [name, list] : lists_) {
      CutFeature feature = cut_list(name, list);
      const auto steps = static_cast<std::uint32_t>(feature.sizes.size());
      if (steps == 0) continue;
      if (cut.steps != 0 && steps != cut.steps) {
        refuse("has " + std::to_string(cut.steps) + " steps in " + quoted(decides) + " and " +
               std::to_string(steps) + " in " + quoted(name));
      }
      decides = name;
      cut.steps = steps;
      find_width(feature);
      cut.features.push_back(std::move(feature));
    }
    return cut;
  }

  // A piece is a Feature of the list, with its tag and length.
  CutFeature cut_list(std::string_view name, WireBytes list) const {
    CutFeature cut{name, listed(StepForm::bytes), 0, list, 0, {}};
    WireReader reader(list);
    const auto refuse_form = [&] {
      refuse("has a Feature of an unusual form in the list " + quoted(name));
    };
    bool has_form = false;
    std::size_t empty = 0;  // Features before the first with values
    for (std::uint64_t before = 0; !reader.at_end(); ++before) {
      if (before == kMaxSteps) refuse("has too many steps in " + quoted(name));
      const std::size_t left = reader.bytes_left();
      WireBytes feature;
      if (!reader.take(bytes_tag(1)) || !reader.read_bytes(feature)) {
        refuse("has no intact list of Features in " + quoted(name));
      }
      const auto bytes = static_cast<std::uint32_t>(left - reader.bytes_left());
      cut.sizes.push_back(bytes);
      CountedFeature found{name, StepForm::bytes, {}, 0, 0};
      ListKind kind;
      if (!read_list_kind(feature, kind)) refuse("has no list in " + quoted(name));
      if (kind != ListKind::none) {
        const FeatureList values = find_list(feature, kind, Dialect::sequence_example);
        if (values.form == ListForm::malformed) refuse("has no intact list in " + quoted(name));
        found.form = form_of(kind, values.form);
        found.list = values.values;
        count_values(found);
      }
      if (found.count != 0) {
        if (has_form && cut.form != listed(found.form)) {
          refuse("has Features of two forms in the list " + quoted(name));
        }
        has_form = true;
        cut.form = listed(found.form);
      } else if (!has_form) {
        ++empty;
        if (kind != ListKind::none) cut.form = listed(found.form);  // an empty list has a kind, too
      }
      if (value_bytes_of(has_form ? cut.form : listed(found.form), bytes) != found.list.size() ||
          (!found.list.empty() && found.list.data() + found.list.size() != reader.position())) {
        refuse_form();
      }
      const auto count = static_cast<std::uint32_t>(found.count);
      if (before == 0) cut.values = count;
      if (count != cut.values) cut.values = 0;
      if (const std::uint32_t wanted = given(name); wanted != 0 && wanted != count) {
        refuse("has " + std::to_string(count) + " values in a Feature of " + quoted(name) +
               " instead of " + std::to_string(wanted));
      }
    }
    for (std::size_t i = 0; i < empty; ++i) {
      if (value_bytes_of(cut.form, cut.sizes[i]) != 0) refuse_form();
    }
    return cut;
  }

  void find_features() {
    const std::uint8_t* const stopped =
        for_each_whole_entry(record_, [this](WireBytes entry, WireBytes key, WireBytes feature) {
          const std::string_view name = text_of(key);
          if (!axis_.has(name)) {
            rest_.push_back(entry);
            return;
          }
          ListKind kind;
          if (!read_list_kind(feature, kind)) refuse("has no list in " + quoted(name));
          if (kind == ListKind::none) return;  // does not replace an earlier list
          const FeatureList list = find_list(feature, kind);
          if (list.form == ListForm::malformed) refuse("has no intact list in " + quoted(name));
          found_.erase(name);
          if (list.form == ListForm::empty || list.values.empty()) return;
          found_[name] = {name, form_of(kind, list.form), list.values, 0, 0};
        });
    if (stopped != nullptr) {
      refuse("is not an Example: it breaks off at byte " +
             std::to_string(stopped - record_.data()));
    }
  }

  // Returns the number of values of a step, if the axis says so.
  std::uint32_t given(std::string_view name) const {
    const auto found = axis_.features.find(name);
    return found == axis_.features.end() ? StepAxis::kFindOut : found->second;
  }

  static bool ends_with(std::string_view name, std::string_view end) {
    return name.size() >= end.size() && name.substr(name.size() - end.size()) == end;
  }

  // Returns the name before "/ragged_...", if the feature is a part of a ragged tensor.
  static std::optional<std::string_view> ragged_name(std::string_view name) {
    if (ends_with(name, kFlatValues)) return name.substr(0, name.size() - kFlatValues.size());
    const std::size_t digits = name.find_last_not_of("0123456789");
    if (digits == std::string_view::npos || digits + 1 == name.size()) return {};
    const std::string_view before = name.substr(0, digits + 1);
    if (!ends_with(before, kRowLengths)) return {};
    return before.substr(0, before.size() - kRowLengths.size());
  }

  const CountedFeature* row_lengths(std::string_view ragged, unsigned level) const {
    const auto found =
        found_.find(std::string(ragged) + std::string(kRowLengths) + std::to_string(level));
    return found == found_.end() ? nullptr : &found->second;
  }

  // Counts the steps. Features with a known number of values per step decide. Otherwise the
  // shortest feature has one value per step.
  std::uint64_t count_steps() const {
    const CountedFeature* decides = nullptr;
    std::uint64_t steps = 0;
    for (const auto& [name, found] : found_) {
      const auto ragged = ragged_name(name);
      std::uint64_t values = given(name);
      if (ragged) {
        if (row_lengths(*ragged, 0) != &found) continue;
        values = 1;
      }
      if (values == 0) continue;
      if (found.count % values != 0) refuse_count(found, values);
      const std::uint64_t here = found.count / values;
      if (decides != nullptr && here != steps) {
        refuse("has " + std::to_string(steps) + " steps in " + quoted(decides->name) + " and " +
               std::to_string(here) + " in " + quoted(name));
      }
      decides = &found, steps = here;
    }
    if (decides == nullptr) {
      for (const auto& [name, found] : found_) {
        if (ragged_name(name)) continue;
        if (decides == nullptr || found.count < steps) decides = &found, steps = found.count;
      }
    }
    if (steps >= kMaxSteps) refuse("has " + std::to_string(steps) + " steps, which are too many");
    if (decides == nullptr && !found_.empty()) {
      refuse("has no lengths of the rows of " + quoted(found_.begin()->first));
    }
    return steps;
  }

  [[noreturn]] static void refuse_count(const CountedFeature& found, std::uint64_t values) {
    refuse("has " + std::to_string(found.count) + " values in " + quoted(found.name) +
           ", which are not " + std::to_string(values) + " for each step");
  }

  CutFeature cut_feature(const CountedFeature& found, std::uint32_t steps) const {
    CutFeature cut{found.name, found.form, 0, found.list, 0, {}};
    if (const auto ragged = ragged_name(found.name); ragged && row_lengths(*ragged, 0) != &found) {
      cut_ragged(found, *ragged, steps, cut);
      return cut;
    }
    if (found.count % steps != 0) {
      refuse(
          "has " + std::to_string(found.count) + " values in " + quoted(found.name) +
          ", which do not divide among its " + std::to_string(steps) +
          " steps. If it is not a feature of steps, or another feature has more than one value " +
          "for each step, name such features: along={name: values of a step, ...}");
    }
    cut.values = static_cast<std::uint32_t>(found.count / steps);
    if (found.value_bytes != 0) {
      cut.width = static_cast<std::uint32_t>(found.value_bytes * cut.values);
      return cut;
    }
    WireReader reader(found.list);
    for (std::uint32_t step = 0; step < steps; ++step) {
      cut.sizes.push_back(take(reader, found.form, cut.values));
    }
    find_width(cut);
    return cut;
  }

  // Applies the row lengths of every level, down to the level of the list.
  void cut_ragged(const CountedFeature& found, std::string_view ragged, std::uint32_t steps,
                  CutFeature& cut) const {
    std::vector<std::uint64_t> counts(steps, 1);  // for each step, the rows of the level above
    std::uint64_t total = steps;
    for (unsigned level = 0;; ++level) {
      const CountedFeature* const lengths = row_lengths(ragged, level);
      if (lengths == nullptr || lengths == &found) break;
      if (lengths->count != total) {
        refuse("has " + std::to_string(lengths->count) + " values in " + quoted(lengths->name) +
               " instead of " + std::to_string(total));
      }
      total = sum_rows(*lengths, counts);
    }
    // A value may have a shape of its own.
    if (total == 0 || found.count % total != 0) {
      refuse("has " + std::to_string(found.count) + " values in " + quoted(found.name) +
             " for rows of " + std::to_string(total));
    }
    const std::uint64_t inner = found.count / total;
    WireReader reader(found.list);
    for (const std::uint64_t count : counts) {
      cut.sizes.push_back(take(reader, found.form, count * inner));
    }
  }

  // Replaces each step's number of rows by the sum of the rows' lengths. Returns the sum over all
  // steps.
  static std::uint64_t sum_rows(const CountedFeature& lengths, std::vector<std::uint64_t>& counts) {
    if (list_kind_of(lengths.form) != ListKind::ints) {
      refuse("has no integers in " + quoted(lengths.name));
    }
    WireReader reader(lengths.list);
    std::uint64_t total = 0;
    for (std::uint64_t& count : counts) {
      std::uint64_t sum = 0;
      for (std::uint64_t row = 0; row < count; ++row) {
        std::uint64_t length;
        if (lengths.form == StepForm::ints) reader.take(varint_tag(1));
        if (!reader.read_varint(length) || length > kMaxSteps || total > kMaxSteps) {
          refuse("has impossible lengths in " + quoted(lengths.name));
        }
        sum += length;
        total += length;
      }
      count = sum;
    }
    return total;
  }

  static std::uint32_t take(WireReader& reader, StepForm form, std::uint64_t values) {
    const std::size_t before = reader.bytes_left();
    for (std::uint64_t value = 0; value < values; ++value) skip_value(reader, form);
    return static_cast<std::uint32_t>(before - reader.bytes_left());
  }

  static void find_width(CutFeature& cut) {
    const std::uint32_t first = cut.sizes.front();
    const auto is_first = [first](std::uint32_t size) { return size == first; };
    if (first == 0 || !std::all_of(cut.sizes.begin(), cut.sizes.end(), is_first)) return;
    cut.width = first;
    cut.sizes.clear();
  }

  const WireBytes record_;
  const StepAxis& axis_;
  std::map<std::string_view, WireBytes, std::less<>> lists_;  // along the axis
  std::map<std::string_view, CountedFeature, std::less<>> found_;
  std::vector<WireBytes> rest_;
};

}  // namespace

bool StepAxis::has(std::string_view name) const noexcept {
  if (features.find(name) != features.end()) return true;
  return std::any_of(prefixes.begin(), prefixes.end(), [name](const std::string& prefix) {
    return name.substr(0, prefix.size()) == prefix;
  });
}

std::string StepAxis::encode() const {
  return encode_as(kEncoding, *this, code_axis);
}

StepAxis StepAxis::decode(std::string_view encoded) {
  return decode_as<StepAxis>(kEncoding, encoded, code_axis);
}

CutRecord cut_record(WireBytes record, const StepAxis& axis) {
  if (record.size() > std::numeric_limits<std::uint32_t>::max()) {
    refuse("has more than 4 GiB");
  }
  return Cutting(record, axis).run();
}

}  // namespace tfrfast
