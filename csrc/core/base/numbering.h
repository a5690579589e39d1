// Checks the numbers of records, rows and positions.
#pragma once

#include <cstdint>
#include <string>

namespace tfrfast {

// Throws Error out_of_range: "Record 12 does not exist: there are 10 records." `what` is "Record".
[[noreturn]] void throw_no_such(const std::string& what, const std::string& number,
                                std::uint64_t count);

// Returns a number from 0 to `count` - 1. A negative number counts from the end, as in Python's
// lists. Throws Error out_of_range.
inline std::int64_t number_below(std::int64_t count, std::int64_t number, const char* what) {
  if (number >= count || number < -count) {
    throw_no_such(what, std::to_string(number), static_cast<std::uint64_t>(count));
  }
  return number < 0 ? number + count : number;
}

}  // namespace tfrfast
