#include "python/choices.h"

#include <vector>

#include "core/base/choice.h"

namespace tfrfast::python {
namespace {

constexpr Choice<IoMode> kIoModes[] = {
    {"auto", IoMode::automatic}, {"mmap", IoMode::mapped}, {"pread", IoMode::pread}};
constexpr Choice<Verify> kVerifyModes[] = {{"full", Verify::full}, {"header", Verify::header}};
constexpr Choice<bool> kOnCorruption[] = {{"raise", false}, {"skip", true}};
constexpr Choice<IndexUse> kIndexUses[] = {
    {"auto", IndexUse::automatic}, {"memory", IndexUse::memory}, {"require", IndexUse::require}};

}  // namespace

IoMode io_mode(const std::string& io) {
  return choose("io", io, kIoModes);
}

Verify verify_mode(const std::string& verify) {
  return choose("verify", verify, kVerifyModes);
}

bool skips_damage(const std::string& on_corruption) {
  return choose("on_corruption", on_corruption, kOnCorruption);
}

IndexUse index_use(const std::string& index) {
  return choose("index", index, kIndexUses);
}

std::optional<Compression> compression_choice(const std::string& compression) {
  std::vector<Choice<std::optional<Compression>>> choices{{"auto", {}}, {"", Compression::none}};
  for (const Codec& codec : codecs()) choices.push_back({codec.name, codec.compression});
  return choose("compression", compression, choices);
}

}  // namespace tfrfast::python
