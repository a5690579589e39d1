// What a shard's bytes are wrapped in.
#pragma once

#include <cstdint>
#include <string>

#include "core/storage/stored_file.h"

namespace tfrfast {

enum class Compression : std::uint8_t { none = 0, gzip = 1, zlib = 2 };

const char* compression_name(Compression compression) noexcept;  // "", "GZIP", "ZLIB"

// Plain framing is tried first: a plain shard whose first record has 376 bytes begins like zlib.
// A shard that is neither plain nor compressed counts as plain, so that its damage is reported.
Compression detect_compression(const StoredFile& file);

}  // namespace tfrfast
