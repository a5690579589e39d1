// Describes how to read steps, for a graph or another process that must read the same steps. A
// SourceSpec carries the description as a string.
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

  // Throws like StepFile::open() and StepReader.
  std::shared_ptr<const StepReader> open(std::shared_ptr<const Reader> records) const;
};

// Encodes options. Different options have different encodings.
std::string encode_options(const StepOptions& options);

}  // namespace tfrfast
