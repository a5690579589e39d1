// What a graph carries of its data: the shards' names and, once they are known, their sizes and
// record counts. One string, made once, opened by any process that has loaded the ops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/codec/codec.h"

namespace tfrfast::tensorflow {

struct ShardSpec {
  std::string path;
  std::uint64_t file_bytes = 0;  // of a planned source; else 0
  std::uint64_t record_count = 0;
};

struct SourceSpec {
  // Planned: all counts are known, and data that does not have them is refused. Otherwise shards
  // are opened when they are reached.
  bool planned = false;
  bool skip_damage = false;
  bool zero_copy = false;
  std::optional<Compression> compression = Compression::none;  // empty: find out, shard by shard
  std::vector<ShardSpec> shards;

  std::string encode() const;
};

// Compressions as numbers, as graphs have them.
std::int64_t compression_code(std::optional<Compression> compression) noexcept;
std::optional<Compression> compression_of_code(std::int64_t code) noexcept;

// Throws Error(invalid) for text that encode() did not write.
SourceSpec decode_source(std::string_view text);

// A hash that tells sources apart. It reads only the beginning of the text.
std::uint64_t source_hash(std::string_view text);

}  // namespace tfrfast::tensorflow
