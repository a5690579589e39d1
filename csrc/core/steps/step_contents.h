// What the Example of a step holds: features of a step file, under which names, and of which steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/steps/step_file.h"

namespace tfrfast {

// Which steps around one its Example holds of a feature: `before` earlier and `after` later ones,
// `stride` apart, within its episode.
struct StepWindow {
  // What stands for steps beyond the ends of the episode.
  enum class Pad : std::uint8_t {
    repeat,    // the first or the last step
    zeros,     // zeros, or empty byte strings
    leave_out  // nothing: a step that needs them is not counted as one
  };
  std::uint32_t before = 0;
  std::uint32_t after = 0;
  std::uint32_t stride = 1;
  Pad pad = Pad::repeat;

  std::size_t count() const noexcept { return std::size_t{before} + after + 1; }
};

// One step later in the episode, drawn for each step: min_steps to max_steps later.
// docs/permutation.md says which.
struct LaterStep {
  std::string of;  // the feature that it has, by its new name
  std::uint64_t seed = 0;
  std::uint32_t min_steps = 0;
  std::uint32_t max_steps = 0;

  struct Drawn {
    std::uint32_t step = 0;
    bool is_real = true;  // else the last step stands for one beyond the end
  };
  // `number` is that of the step among those of all records, `step` that in its episode of `steps`.
  Drawn draw(std::uint64_t number, std::uint32_t step, std::uint32_t steps) const noexcept;
};

template <class T>
using ByName = std::map<std::string, T, std::less<>>;

struct StepOptions {
  ByName<std::string> names;   // new ones of features, by those in the records
  ByName<StepWindow> windows;  // of features by their new names
  ByName<LaterStep> laters;    // by the names of the features that they add
  // Of features by their new names: what the map's entry holds in a step without values of them.
  ByName<std::string> absent;
  // Only these features. If none of them is one of the episode's, those are not read.
  std::optional<std::set<std::string, std::less<>>> columns;
  // A bit for each step that there would be without it, as StepChoice has them.
  std::optional<std::string> chosen;
};

struct StepContents {
  struct Feature {
    std::size_t number = 0;  // in the file
    const StepFeature* in_file = nullptr;
    std::string name;
    std::string key;  // as an entry begins with it
    // Without both, it is the step itself.
    std::optional<StepWindow> window;
    std::optional<LaterStep> later;
    std::string valid_key;  // of the entry that says which steps are real
    std::string zeros;      // what stands for one step

    std::size_t valid_count() const noexcept {
      return window ? window->count() : (later ? std::size_t{1} : 0);
    }
  };
  struct Absent {
    std::string name;
    std::string entry;
  };

  // Throws Error invalid if a name, a window or a later step is of no feature that the steps have,
  // or two features have one name.
  StepContents(const StepFile& file, const StepOptions& options);

  // Throws Error invalid if this entry of the episode's has a name that steps have for another
  // feature.
  void check_rest(WireBytes entry) const;

  std::vector<Feature> features;
  std::vector<Absent> absent;
  // The episode's, and names that they must not have.
  bool has_rest = true;
  std::set<std::string, std::less<>> added_names;
  // Steps that are left out of each episode, at its beginning and at its end.
  std::uint32_t left_before = 0;
  std::uint32_t left_after = 0;
};

}  // namespace tfrfast
