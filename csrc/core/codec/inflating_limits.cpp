#include "core/codec/inflating_limits.h"

#include "core/base/setting.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kDefault = std::uint64_t{1} << 30;

}  // namespace

std::uint64_t max_inflated_records() noexcept {
  static const std::uint64_t records = setting("TFRFAST_MAX_RECORDS", kDefault);
  return records;
}

std::uint64_t max_inflated_record_bytes() noexcept {
  static const std::uint64_t bytes = setting("TFRFAST_MAX_RECORD_BYTES", kDefault);
  return bytes;
}

}  // namespace tfrfast
