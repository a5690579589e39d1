// How the values of a feature lie in a record, so that those of one step are one run of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/example/list.h"

namespace tfrfast {

// The numbers are those of step files.
enum class StepForm : std::uint8_t {
  bytes = 0,  // a tag, a length and that many bytes for each value
  packed_floats = 1,
  floats = 2,  // a tag before each
  packed_ints = 3,
  ints = 4,  // a tag before each
};
inline constexpr StepForm kLastForm = StepForm::ints;

constexpr ListKind list_kind_of(StepForm form) noexcept {
  switch (form) {
    case StepForm::bytes:
      return ListKind::bytes;
    case StepForm::packed_floats:
    case StepForm::floats:
      return ListKind::floats;
    default:
      return ListKind::ints;
  }
}

constexpr bool is_packed(StepForm form) noexcept {
  return form == StepForm::packed_floats || form == StepForm::packed_ints;
}

// One value of that form which is zero, or the empty string.
std::string zero_of(StepForm form);

constexpr std::size_t varint_bytes(std::uint64_t value) noexcept {
  std::size_t count = 1;
  for (; value >= 0x80; value >>= 7) ++count;
  return count;
}

inline std::uint8_t* put_varint(std::uint8_t* out, std::uint64_t value) noexcept {
  for (; value >= 0x80; value >>= 7) *out++ = static_cast<std::uint8_t>(value | 0x80);
  *out++ = static_cast<std::uint8_t>(value);
  return out;
}

}  // namespace tfrfast
