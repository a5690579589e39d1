// Decides the contents of a step's Example: the features of a step file, their names, and their
// steps.
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

// The window of a feature: a step's Example holds the values of `before` earlier and `after` later
// steps of the episode, `stride` apart.
struct StepWindow {
  // The replacement of steps beyond the ends of the episode.
  enum class Pad : std::uint8_t {
    repeat,    // the first or the last step
    zeros,     // zeros, or empty byte strings
    leave_out  // no replacement: a step that would need a replacement does not count
  };
  std::uint32_t before = 0;
  std::uint32_t after = 0;
  std::uint32_t stride = 1;
  Pad pad = Pad::repeat;

  std::size_t count() const noexcept { return std::size_t{before} + after + 1; }
};

// A later step of the episode, drawn for each step: min_steps to max_steps later.
// docs/permutation.md specifies the draw.
struct LaterStep {
  std::string of;  // new name of the feature whose value the later step gives
  std::uint64_t seed = 0;
  std::uint32_t min_steps = 0;
  std::uint32_t max_steps = 0;

  struct Drawn {
    std::uint32_t step = 0;
    bool is_real = true;  // false: beyond the end, so the last step is the replacement
  };
  // `number` counts the step through all records, and `step` in its episode of `steps` steps.
  Drawn draw(std::uint64_t number, std::uint32_t step, std::uint32_t steps) const noexcept;
};

// One of several features, drawn for each step and epoch. docs/permutation.md specifies the draw.
struct OneOf {
  std::vector<std::string> of;  // new names, or names of added features
  std::uint64_t seed = 0;

  // `number` counts the step through all records.
  std::size_t draw(std::uint64_t number, std::uint64_t epoch) const noexcept;
};

template <class T>
using ByName = std::map<std::string, T, std::less<>>;

struct StepOptions {
  ByName<std::string> names;   // new names of features, by name in the records
  ByName<StepWindow> windows;  // by new name of the feature
  ByName<LaterStep> laters;    // by name of the added feature
  ByName<OneOf> choices;       // by name of the added feature, which replaces the others
  // By new name of a feature: the content of the map's entry in a step without values of the
  // feature.
  ByName<std::string> absent;
  // Only these features. Without a feature of the episode among them, none is read.
  std::optional<std::set<std::string, std::less<>>> columns;
  // Each feature holds the step itself. Windows only decide which steps the bits of `chosen` count.
  bool without_windows = false;
  // A bit per step, as in StepChoice. The bits count the steps without a choice.
  std::optional<std::string> chosen;
};

struct StepContents {
  struct Feature {
    std::size_t number = 0;  // in the file
    const StepFeature* in_file = nullptr;
    std::string name;
    std::string key;  // the beginning of an entry
    // With neither member, the feature holds the step itself.
    std::optional<StepWindow> window;
    std::optional<LaterStep> later;
    struct Alternative {
      std::size_t choice = 0;  // in `choices`
      std::size_t number = 0;  // among its features
    };
    std::optional<Alternative> one_of;  // the step has the feature if it was drawn
    std::string valid_key;              // key of the entry that marks real steps
    std::string zeros;                  // the replacement of one step

    std::size_t valid_count() const noexcept {
      return window ? window->count() : (later ? std::size_t{1} : 0);
    }
  };
  struct Absent {
    std::string key;  // the beginning of the entry
    std::string entry;
  };

  // Throws Error invalid if a name, a window or a later step belongs to no feature of the steps, or
  // two features have one name.
  StepContents(const StepFile& file, const StepOptions& options);

  // Throws Error invalid if this entry of the episode has the name of another feature of the steps.
  void check_rest(WireBytes entry) const;

  std::vector<Feature> features;
  std::vector<Absent> absent;
  std::vector<OneOf> choices;
  bool has_rest = true;  // whether the episode's features are included
  // Names that no feature of the episode may have.
  std::set<std::string, std::less<>> added_names;
  // The steps left out at the beginning and at the end of each episode.
  std::uint32_t left_before = 0;
  std::uint32_t left_after = 0;
};

}  // namespace tfrfast
