#include "core/base/numbering.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "core/base/error.h"

namespace tfrfast {
namespace {

std::string refusal(std::int64_t count, std::int64_t number) {
  try {
    number_below(count, number, "Row");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::out_of_range);
    return error.message();
  }
  return "not refused";
}

TEST_CASE("numbering: negative numbers count from the end") {
  for (std::int64_t number = 0; number < 10; ++number) {
    CHECK(number_below(10, number, "Row") == number);
    CHECK(number_below(10, number - 10, "Row") == number);
  }
}

TEST_CASE("numbering: numbers beyond either end are refused as they were given") {
  CHECK(refusal(10, 10) == "Row 10 does not exist: there are 10 rows.");
  CHECK(refusal(10, -11) == "Row -11 does not exist: there are 10 rows.");
  CHECK(refusal(0, 0) == "Row 0 does not exist: there are 0 rows.");
  CHECK(refusal(0, -1) == "Row -1 does not exist: there are 0 rows.");
}

TEST_CASE("numbering: the largest numbers overflow nothing") {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  CHECK(number_below(kMax, -kMax, "Row") == 0);
  CHECK(number_below(kMax, kMax - 1, "Row") == kMax - 1);
  CHECK(refusal(kMax, kMax) != "not refused");
  CHECK(refusal(kMax, kMin) != "not refused");
  CHECK(refusal(3, kMin) == "Row -9223372036854775808 does not exist: there are 3 rows.");
}

}  // namespace
}  // namespace tfrfast
