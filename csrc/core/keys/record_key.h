// Checks and hashes the key of a record.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/example/wire.h"

namespace tfrfast {

// Whether the Example's feature `name` holds exactly one value, equal to `key`. As in decoding, the
// last feature of a name counts. False if the record is not an Example.
bool record_has_key(WireBytes record, std::string_view name, WireBytes key) noexcept;
bool record_has_key(WireBytes record, std::string_view name, std::int64_t key) noexcept;

enum class KeyForm : std::uint8_t {
  absent,  // the Example lacks the feature, or the feature is empty
  one,     // one byte string or int64
  unfit,   // several values, floats, or no Example
};
// Sets `hash` to the hash of the record's key if the record has one key. The hash depends on the
// kind of the key, unlike those of key files.
KeyForm hash_key_of(WireBytes record, std::string_view name, std::uint64_t& hash) noexcept;

}  // namespace tfrfast
