// What a graph, or another process, has to know to read the same steps. It is one string, which a
// SourceSpec carries.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/encoding.h"
#include "core/read/reader.h"
#include "core/steps/step_reader.h"

namespace tfrfast {

struct StepSpec {
  static constexpr EncodedKind kEncoding{"steps", "tfST"};

  std::string path;  // of the step file
  std::uint64_t stamp = 0;
  StepOptions options;

  std::string encode() const;
  static StepSpec decode(std::string_view encoded);  // throws Error invalid

  // Throws what StepFile::open() and StepReader throw.
  std::shared_ptr<const StepReader> open(std::shared_ptr<const Reader> records) const;
};

// Numbers and strings that tell options apart.
std::string encode_options(const StepOptions& options);

}  // namespace tfrfast
