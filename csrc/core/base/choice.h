// Words that name one of a few things, as users write them and descriptions hold them.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

namespace tfrfast {

// A word, and what it stands for.
template <class Value>
struct Choice {
  const char* name;
  Value value;
};

// Error invalid: `<argument> is "<word>", but must be "a", "b" or "c".`
[[noreturn]] void refuse_choice(const char* argument, std::string_view word,
                                const std::vector<std::string_view>& choices);

// The one of `choices` whose `name_of` is `word`. If there is none, throws an Error invalid that
// says what `argument` may be.
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

// What `word` stands for in a table of Choice.
template <class Table>
auto choose(const char* argument, std::string_view word, const Table& table) {
  return find_choice(argument, word, table, [](const auto& each) { return each.name; }).value;
}

}  // namespace tfrfast
