#include "tensorflow/error_text.h"

#include <cerrno>
#include <charconv>

namespace tfrfast::tensorflow {

Code code_of(const Error& error) noexcept {
  switch (error.kind()) {
    case ErrorKind::corrupt:
    case ErrorKind::truncated:
      return Code::data_loss;
    case ErrorKind::stale_index:
    case ErrorKind::closed:
      return Code::failed_precondition;
    case ErrorKind::io:
      switch (error.system_error()) {
        case ENOENT:
        case ENOTDIR:
          return Code::not_found;
        case EACCES:
        case EPERM:
          return Code::permission_denied;
        case EISDIR:
          return Code::failed_precondition;
        case ENOMEM:
        case EMFILE:
        case ENFILE:
          return Code::resource_exhausted;
        default:
          return Code::unknown;
      }
    case ErrorKind::memory:
      return Code::resource_exhausted;
    case ErrorKind::invalid:
    case ErrorKind::out_of_range:
    case ErrorKind::feature:
      return Code::invalid_argument;
  }
  return Code::unknown;
}

std::string encode_error(Code code, std::string_view message) {
  std::string text = std::to_string(static_cast<int>(code));
  text += ' ';
  text += message;
  return text;
}

KernelFailure decode_error(std::string_view text) {
  int code = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), code);
  if (problem != std::errc() || end == text.data() + text.size() || *end != ' ') {
    return {Code::unknown, std::string(text)};
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return {static_cast<Code>(code), std::string(text)};
}

}  // namespace tfrfast::tensorflow
