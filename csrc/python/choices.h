// Converts users' words to enums of the core. For an unknown word, Error invalid lists the allowed
// words.
#pragma once

#include <optional>
#include <string>

#include "core/index/opening.h"
#include "core/read/frame_reader.h"

namespace tfrfast::python {

IoMode io_mode(const std::string& io);
Verify verify_mode(const std::string& verify);
bool skips_damage(const std::string& on_corruption);
IndexUse index_use(const std::string& index);
std::optional<Compression> compression_choice(const std::string& compression);

}  // namespace tfrfast::python
