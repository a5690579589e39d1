// Finds the thing that a word names, and refuses every other word.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

namespace tfrfast {

// A word and its meaning.
template <class Value>
struct Choice {
  const char* name;
  Value value;
};

// Throws Error invalid: `<argument> is "<word>", but must be "a", "b" or "c".`
[[noreturn]] void refuse_choice(const char* argument, std::string_view word,
                                const std::vector<std::string_view>& choices);

// Returns the choice whose `name_of` is `word`. Throws Error invalid, with all names, for any other
// word.
template <class Choices, class NameOf>
const auto& find_choice(const char* argument, std::string_view word, const Choices& choices,
                        NameOf name_of) {
  for (const auto& each : choices) {
    if (word == std::invoke(name_of, each)) return each;
  }
  std::vector<std::string_view> names;
  for (const auto& each : choices) names.push_back(std::invoke(name_of, each));
  refuse_choice(argument, word, names);
}

// Returns the value of `word` in a table of Choice.
template <class Table>
auto choose(const char* argument, std::string_view word, const Table& table) {
  return find_choice(argument, word, table, [](const auto& each) { return each.name; }).value;
}

}  // namespace tfrfast
