// Encodes errors as text. Damage travels through the graph as a string until its turn comes.
#pragma once

#include <string>
#include <string_view>

#include "core/base/error.h"
#include "tensorflow/c_api.h"

namespace tfrfast::tensorflow {

Code code_of(const Error& error) noexcept;

// "<code> <message>". Never empty.
std::string encode_error(Code code, std::string_view message);
inline std::string encode_error(const Error& error) {
  return encode_error(code_of(error), error.message());
}

// Thrown by a kernel to fail with a code of its choice.
struct KernelFailure {
  Code code = Code::unknown;
  std::string message;
};
KernelFailure decode_error(std::string_view text);

}  // namespace tfrfast::tensorflow
