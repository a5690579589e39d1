#include <doctest/doctest.h>

#include <utility>

#include <cerrno>

#include "tensorflow/kernel_call.h"

using namespace tfrfast;
using namespace tfrfast::tensorflow;

TEST_CASE("error text: each error has the code that TensorFlow's users look for") {
  const std::pair<ErrorKind, Code> kinds[] = {
      {ErrorKind::corrupt, Code::data_loss},
      {ErrorKind::truncated, Code::data_loss},
      {ErrorKind::stale_index, Code::failed_precondition},
      {ErrorKind::closed, Code::failed_precondition},
      {ErrorKind::memory, Code::resource_exhausted},
      {ErrorKind::invalid, Code::invalid_argument},
      {ErrorKind::out_of_range, Code::invalid_argument},
      {ErrorKind::feature, Code::invalid_argument},
  };
  for (const auto& [kind, code] : kinds) CHECK(code_of(Error(kind, "")) == code);
  const std::pair<int, Code> numbers[] = {
      {ENOENT, Code::not_found},          {ENOTDIR, Code::not_found},
      {EACCES, Code::permission_denied},  {EISDIR, Code::failed_precondition},
      {EMFILE, Code::resource_exhausted}, {EIO, Code::unknown},
  };
  for (const auto& [number, code] : numbers) {
    CHECK(code_of(Error(ErrorKind::io, "", {}, number)) == code);
  }
}

TEST_CASE("error text: what was encoded is decoded") {
  for (const char* message : {"", "Two words.", " 7 begins with a space", "two\nlines"}) {
    CAPTURE(message);
    const KernelFailure decoded = decode_error(encode_error(Code::data_loss, message));
    CHECK(decoded.code == Code::data_loss);
    CHECK(decoded.message == message);
  }
  CHECK(encode_error(Error(ErrorKind::corrupt, "Bad.")) == "15 Bad.");
}

TEST_CASE("error text: text without a code is a message of an unknown error") {
  for (const char* text : {"", "15", "15x Bad.", "x15 Bad.", " 15 Bad.", "99999999999 Bad."}) {
    CAPTURE(text);
    const KernelFailure decoded = decode_error(text);
    CHECK(decoded.code == Code::unknown);
    CHECK(decoded.message == text);
  }
}
