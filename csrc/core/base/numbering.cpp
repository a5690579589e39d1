#include "core/base/numbering.h"

#include "core/base/error.h"

namespace tfrfast {

void throw_no_such(const std::string& what, const std::string& number, std::uint64_t count) {
  std::string plural = what + "s";
  plural[0] = static_cast<char>(plural[0] - 'A' + 'a');
  throw Error(ErrorKind::out_of_range, what + " " + number + " does not exist: there are " +
                                           std::to_string(count) + " " + plural + ".");
}

}  // namespace tfrfast
