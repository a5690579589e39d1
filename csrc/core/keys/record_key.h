// The key that a record holds.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/example/wire.h"

namespace tfrfast {

// Whether the feature `name` of an Example has exactly this value and no other. As in decoding, the
// last one of that name counts. False if the record is no Example.
bool record_has_key(WireBytes record, std::string_view name, WireBytes key) noexcept;
bool record_has_key(WireBytes record, std::string_view name, std::int64_t key) noexcept;

}  // namespace tfrfast
