#include "core/steps/step_contents.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/example/entry_head.h"
#include "core/order/permutation.h"
#include "core/order/siphash.h"

namespace tfrfast {
namespace {

constexpr std::string_view kValid = "/valid";

[[noreturn]] void refuse_option(const std::string& why) {
  throw Error(ErrorKind::invalid, why);
}

void check_window(const std::string& name, const StepWindow& window) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  const std::uint64_t stride = window.stride;
  if (stride == 0 || window.before * stride > kMost || window.after * stride > kMost) {
    refuse_option("A window of '" + name + "' is too large.");
  }
}

}  // namespace

LaterStep::Drawn LaterStep::draw(std::uint64_t number, std::uint32_t step,
                                 std::uint32_t steps) const noexcept {
  const std::uint32_t last = steps - 1;
  if (last - step < min_steps) return {last, false};
  const std::uint64_t choices = std::uint64_t{std::min(last - step, max_steps)} - min_steps + 1;
  const std::uint64_t word = siphash(derive_key(KeyPurpose::later_steps, seed, 0), {number});
  const auto drawn =
      static_cast<std::uint64_t>(static_cast<unsigned __int128>(word) * choices >> 64);
  return {step + min_steps + static_cast<std::uint32_t>(drawn), true};
}

std::size_t OneOf::draw(std::uint64_t number, std::uint64_t epoch) const noexcept {
  const std::uint64_t word =
      siphash(derive_key(KeyPurpose::choices, seed, epoch), {number, of.size()});
  return static_cast<std::size_t>(static_cast<unsigned __int128>(word) * of.size() >> 64);
}

StepContents::StepContents(const StepFile& file, const StepOptions& options) {
  std::map<std::string, std::string> whose;  // the owner of each name
  const auto take_name = [&](const std::string& name, const std::string& of) {
    const auto [known, is_new] = whose.emplace(name, of);
    if (!is_new && known->second != of) {
      refuse_option("Both " + known->second + " and " + of + " would be called '" + name + "'.");
    }
  };
  const auto is_wanted = [&](const std::string& name) {
    return !options.columns || options.columns->contains(name);
  };
  ByName<std::vector<std::size_t>> by_name;  // numbers in the file
  for (std::size_t number = 0; number < file.features().size(); ++number) {
    const StepFeature& each = file.features()[number];
    const auto renamed = options.names.find(each.name);
    const std::string& name = renamed == options.names.end() ? each.name : renamed->second;
    take_name(name, "'" + each.name + "'");
    // A list may have the name of a feature of the context.
    if (name != each.name || is_listed(each.form)) added_names.insert(name);
    by_name[name].push_back(number);
  }
  // The names that a feature has in the steps: its own, or the names of choices that may draw it.
  struct Shown {
    std::string name;
    std::optional<Feature::Alternative> one_of;
  };
  ByName<std::vector<Shown>> shown;
  const bool has_windows = !options.without_windows;
  for (const auto& [name, one_of] : options.choices) {
    if (!has_windows) break;
    for (std::size_t number = 0; number < one_of.of.size(); ++number) {
      const std::string& of = one_of.of[number];
      if (!by_name.contains(of) && !options.laters.contains(of)) {
        refuse_option("'" + name + "' is one of several features, of which '" + of +
                      "' is not a feature of the steps.");
      }
      shown[of].push_back({name, {{choices.size(), number}}});
    }
    take_name(name, "'" + name + "', one of several features,");
    added_names.insert(name);
    choices.push_back(one_of);
  }
  // Calls `add(feature)` for each wanted feature that holds values of the file's feature `number`.
  const auto add_features = [&](const std::string& name, std::size_t number, bool has_valid,
                                const std::string& of, const auto& add) {
    const auto known = shown.find(name);
    const std::vector<Shown> alone = {{name, {}}};
    for (const Shown& each : known == shown.end() ? alone : known->second) {
      const std::string valid = each.name + std::string(kValid);
      if (has_valid) {
        take_name(valid, each.one_of ? "'" + each.name + "'" : of);
        added_names.insert(valid);
      }
      if (!is_wanted(each.name) && !(has_valid && is_wanted(valid))) continue;
      Feature made;
      made.number = number;
      made.in_file = &file.features()[number];
      made.name = each.name;
      made.key = key_field(each.name);
      made.valid_key = key_field(valid);
      made.one_of = each.one_of;
      add(features.emplace_back(std::move(made)));
    }
  };
  for (const auto& [name, window] : options.windows) {
    if (!by_name.contains(name)) {
      refuse_option("A window is of '" + name + "', which is not a feature of the steps.");
    }
    check_window(name, window);
    const bool counts_all = options.without_windows && !options.chosen;
    if (counts_all || window.pad != StepWindow::Pad::leave_out) continue;
    left_before = std::max(left_before, window.before * window.stride);
    left_after = std::max(left_after, window.after * window.stride);
  }
  for (const auto& [name, numbers] : by_name) {
    const auto window = options.windows.find(name);
    const bool has_window = has_windows && window != options.windows.end();
    for (const std::size_t number : numbers) {
      add_features(name, number, has_window, "the window of '" + name + "'", [&](Feature& feature) {
        if (!has_window) return;
        feature.window = window->second;
        const std::string zero = zero_of(feature.in_file->form);
        for (std::uint32_t i = 0; i < feature.in_file->values; ++i) feature.zeros += zero;
      });
    }
  }
  for (const auto& [name, later] : options.laters) {
    const std::string described = "a later step of '" + later.of + "'";
    const auto of = by_name.find(later.of);
    if (of == by_name.end()) {
      refuse_option("'" + name + "' is " + described + ", which is not a feature of the steps.");
    }
    if (later.min_steps > later.max_steps) {
      refuse_option("'" + name + "' is at least " + std::to_string(later.min_steps) +
                    " steps later, and at most " + std::to_string(later.max_steps) + ".");
    }
    take_name(name, described);
    added_names.insert(name);
    if (!has_windows) continue;
    for (const std::size_t number : of->second) {
      add_features(name, number, true, described,
                   [&later = later](Feature& feature) { feature.later = later; });
    }
  }
  for (const auto& [from, to] : options.names) {
    const auto has_it = [&from = from](const StepFeature& each) { return each.name == from; };
    if (std::none_of(file.features().begin(), file.features().end(), has_it)) {
      refuse_option("'" + from + "' is to be renamed, but is not a feature of the steps.");
    }
  }
  for (const auto& [name, entry] : options.absent) {
    if (is_wanted(name)) absent.push_back({key_field(name), entry});
  }
  if (!options.columns) return;
  has_rest = std::any_of(options.columns->begin(), options.columns->end(),
                         [&](const std::string& name) { return !whose.contains(name); });
}

void StepContents::check_rest(WireBytes entry) const {
  if (added_names.empty()) return;
  WireReader reader(entry);
  WireBytes bytes;
  std::uint32_t tag;
  while (reader.read_length(tag) && reader.read_bytes(bytes)) {
    if (tag != bytes_tag(1)) continue;
    const std::string_view name(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!added_names.contains(name)) return;
    refuse_option("An episode has a feature '" + std::string(name) +
                  "' of its own, and the steps would have another feature of that name. Give "
                  "the steps' feature another name with rename=.");
  }
}

}  // namespace tfrfast
