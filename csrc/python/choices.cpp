#include "python/choices.h"

#include <initializer_list>
#include <utility>

#include "core/base/error.h"

namespace tfrfast::python {
namespace {

template <class Choice>
Choice choose(const char* argument, const std::string& word,
              std::initializer_list<std::pair<const char*, Choice>> choices) {
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
  return choose<Verify>(
      "verify", verify,
      {{"full", Verify::full}, {"header", Verify::header}, {"none", Verify::none}});
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
  return choose<std::optional<Compression>>("compression", compression,
                                            {{"auto", std::nullopt},
                                             {"", Compression::none},
                                             {"GZIP", Compression::gzip},
                                             {"ZLIB", Compression::zlib}});
}

}  // namespace tfrfast::python
