#include "core/storage/cache/cache_access.h"

#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

#include "core/base/error.h"

namespace tfrfast {
namespace {

constexpr std::string_view kAccessBegins = "cache:";
constexpr std::string_view kPlaceBegins = "at:";

[[noreturn]] void refuse_access() {
  throw Error(ErrorKind::invalid, "The description of a cache is damaged.");
}

std::uint64_t number_before_colon(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end == text.data() + text.size() || *end != ':') refuse_access();
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return number;
}

}  // namespace

CacheAccess split_access(const std::string& access) {
  CacheAccess result;
  if (!access.starts_with(kAccessBegins)) {
    result.client = access;
    return result;
  }
  std::string_view rest = std::string_view(access).substr(kAccessBegins.size());
  result.limit_bytes = number_before_colon(rest);
  const std::uint64_t length = number_before_colon(rest);
  if (length == 0 || length > rest.size()) refuse_access();
  result.folder = rest.substr(0, static_cast<std::size_t>(length));
  rest.remove_prefix(static_cast<std::size_t>(length));
  if (rest.starts_with(kPlaceBegins)) {
    rest.remove_prefix(kPlaceBegins.size());
    const std::uint64_t bytes = number_before_colon(rest);
    if (bytes > rest.size()) refuse_access();
    result.place = rest.substr(0, static_cast<std::size_t>(bytes));
    rest.remove_prefix(static_cast<std::size_t>(bytes));
  }
  result.client = rest;
  return result;
}

}  // namespace tfrfast
