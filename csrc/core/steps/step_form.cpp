#include "core/steps/step_form.h"

namespace tfrfast {

std::string zero_of(StepForm form) {
  switch (values_form(form)) {
    case StepForm::bytes:
      return {'\x0a', '\0'};
    case StepForm::packed_floats:
      return std::string(4, '\0');
    case StepForm::floats:
      return {'\x0d', '\0', '\0', '\0', '\0'};
    case StepForm::packed_ints:
      return {'\0'};
    default:
      return {'\x08', '\0'};
  }
}

namespace {

// Returns the size of a message that takes `bytes` bytes with its tag and its length. Empty if no
// message takes so many bytes.
std::optional<std::uint64_t> content_of(std::uint64_t bytes) noexcept {
  for (std::uint64_t length_bytes = 1; length_bytes < bytes; ++length_bytes) {
    const std::uint64_t content = bytes - 1 - length_bytes;
    const std::size_t needed = varint_bytes(content);
    if (needed == length_bytes) return content;
    if (needed < length_bytes) break;
  }
  return {};
}

}  // namespace

std::optional<std::uint64_t> value_bytes_of(StepForm form, std::uint64_t piece_bytes) noexcept {
  if (!is_listed(form)) return piece_bytes;
  std::optional<std::uint64_t> content = piece_bytes;
  // The Feature, its list and, if the list is packed, its values. Each may be empty.
  for (int messages = is_packed(form) ? 3 : 2; messages > 0 && content != 0; --messages) {
    content = content_of(*content);
    if (!content) return {};
  }
  return content;
}

}  // namespace tfrfast
