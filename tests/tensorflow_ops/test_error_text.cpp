#include <doctest/doctest.h>

#include <cerrno>

#include "tensorflow/error_text.h"

using namespace tfrfast;
using namespace tfrfast::tensorflow;

TEST_CASE("error text: each kind of error has the code that TensorFlow's users look for") {
  const auto code = [](ErrorKind kind) { return code_of(Error(kind, "")); };
  CHECK(code(ErrorKind::corrupt) == Code::data_loss);
  CHECK(code(ErrorKind::truncated) == Code::data_loss);
  CHECK(code(ErrorKind::stale_index) == Code::failed_precondition);
  CHECK(code(ErrorKind::closed) == Code::failed_precondition);
  CHECK(code(ErrorKind::memory) == Code::resource_exhausted);
  CHECK(code(ErrorKind::invalid) == Code::invalid_argument);
  CHECK(code(ErrorKind::out_of_range) == Code::invalid_argument);
  CHECK(code(ErrorKind::feature) == Code::invalid_argument);
}

TEST_CASE("error text: an error of the system has the code that its number suggests") {
  const auto code = [](int number) { return code_of(Error(ErrorKind::io, "", {}, number)); };
  CHECK(code(ENOENT) == Code::not_found);
  CHECK(code(ENOTDIR) == Code::not_found);
  CHECK(code(EACCES) == Code::permission_denied);
  CHECK(code(EPERM) == Code::permission_denied);
  CHECK(code(EISDIR) == Code::failed_precondition);
  CHECK(code(EMFILE) == Code::resource_exhausted);
  CHECK(code(EIO) == Code::unknown);
}

TEST_CASE("error text: what was encoded is decoded") {
  for (const char* message : {"", "Two words.", " 7 begins with a space", "two\nlines"}) {
    CAPTURE(message);
    const DecodedError decoded = decode_error(encode_error(Code::data_loss, message));
    CHECK(decoded.code == Code::data_loss);
    CHECK(decoded.message == message);
  }
  CHECK(encode_error(Error(ErrorKind::corrupt, "Bad.")) == "15 Bad.");
}

TEST_CASE("error text: text without a code is a message of an unknown error") {
  for (const char* text : {"", "15", "15x Bad.", "x15 Bad.", " 15 Bad.", "99999999999 Bad."}) {
    CAPTURE(text);
    const DecodedError decoded = decode_error(text);
    CHECK(decoded.code == Code::unknown);
    CHECK(decoded.message == text);
  }
}
