// Checks the key of a record.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/example/wire.h"

namespace tfrfast {

// Whether the Example's feature `name` holds exactly one value, equal to `key`. As in decoding, the
// last feature of a name counts. False if the record is not an Example.
bool record_has_key(WireBytes record, std::string_view name, WireBytes key) noexcept;
bool record_has_key(WireBytes record, std::string_view name, std::int64_t key) noexcept;

}  // namespace tfrfast
