#include "python/choices.h"

#include <utility>
#include <vector>

#include "core/base/error.h"

namespace tfrfast::python {
namespace {

template <class Choice>
Choice choose(const char* argument, const std::string& word,
              const std::vector<std::pair<const char*, Choice>>& choices) {
  std::string allowed;
  for (const auto& [name, choice] : choices) {
    if (word == name) return choice;
    allowed += (allowed.empty() ? "\"" : ", \"") + std::string(name) + "\"";
  }
  throw Error(ErrorKind::invalid,
              std::string(argument) + " must be one of " + allowed + ", not \"" + word + "\".");
}

}  // namespace

IoMode io_mode(const std::string& io) {
  return choose<IoMode>(
      "io", io, {{"auto", IoMode::automatic}, {"mmap", IoMode::mapped}, {"pread", IoMode::pread}});
}

Verify verify_mode(const std::string& verify) {
  return choose<Verify>("verify", verify, {{"full", Verify::full}, {"header", Verify::header}});
}

bool skips_damage(const std::string& on_corruption) {
  return choose<bool>("on_corruption", on_corruption, {{"raise", false}, {"skip", true}});
}

IndexUse index_use(const std::string& index) {
  return choose<IndexUse>("index", index,
                          {{"auto", IndexUse::automatic},
                           {"memory", IndexUse::memory},
                           {"require", IndexUse::require}});
}

std::optional<Compression> compression_choice(const std::string& compression) {
  std::vector<std::pair<const char*, std::optional<Compression>>> choices{{"auto", std::nullopt},
                                                                          {"", Compression::none}};
  for (const Codec& codec : codecs()) choices.emplace_back(codec.name, codec.compression);
  return choose("compression", compression, choices);
}

}  // namespace tfrfast::python
