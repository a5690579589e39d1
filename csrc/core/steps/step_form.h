// The encoding of a feature's values in a record, in which a step's values are one run of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/example/list.h"

namespace tfrfast {

// Step files store these numbers.
enum class StepForm : std::uint8_t {
  bytes = 0,  // a tag, a length and the bytes before the next value
  packed_floats = 1,
  floats = 2,  // a tag before each value
  packed_ints = 3,
  ints = 4,  // a tag before each value
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

// A value of the form that is zero, or the empty string.
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
