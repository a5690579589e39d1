#include "core/base/error.h"

#include <system_error>
#include <utility>

#include "core/base/printable.h"

namespace tfrfast {

Error::Error(ErrorKind kind, std::string message, ErrorPlace place, int system_error)
    : kind_(kind),
      system_error_(system_error),
      message_(printable(message)),
      place_(std::move(place)) {}

void throw_system_error(int system_error, const std::string& action, const std::string& path,
                        const std::string& advice) {
  std::string message =
      action + " '" + path + "' failed: " + std::generic_category().message(system_error) + ".";
  if (!advice.empty()) message += " " + advice;
  throw Error(ErrorKind::io, std::move(message), {path, {}, {}}, system_error);
}

}  // namespace tfrfast
