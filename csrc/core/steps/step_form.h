// The encoding of a feature's values in a record, in which a step's values are one run of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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
  // In a SequenceExample: a tag, a length and a Feature for each step. The Feature's values have
  // the form with this number minus 5.
  listed_bytes = 5,
  listed_packed_floats = 6,
  listed_floats = 7,
  listed_packed_ints = 8,
  listed_ints = 9,
};
inline constexpr StepForm kLastForm = StepForm::listed_ints;

constexpr bool is_listed(StepForm form) noexcept {
  return form >= StepForm::listed_bytes;
}
constexpr StepForm values_form(StepForm form) noexcept {
  return is_listed(form) ? static_cast<StepForm>(static_cast<unsigned>(form) - 5) : form;
}
constexpr StepForm listed(StepForm form) noexcept {
  return static_cast<StepForm>(static_cast<unsigned>(form) + 5);
}

constexpr ListKind list_kind_of(StepForm form) noexcept {
  switch (values_form(form)) {
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
  return values_form(form) == StepForm::packed_floats || values_form(form) == StepForm::packed_ints;
}

// A value of the form that is zero, or the empty string.
std::string zero_of(StepForm form);

// Returns the size of the values at the end of a piece of `piece_bytes` bytes, if all lengths of
// its messages are encoded in the shortest way, and the messages hold nothing else. Empty if no
// such piece has this size.
std::optional<std::uint64_t> value_bytes_of(StepForm form, std::uint64_t piece_bytes) noexcept;

}  // namespace tfrfast
