// Describes how to read data, for a graph or another process that must read the same data in the
// same way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/encoding.h"
#include "core/codec/codec.h"
#include "core/index/opening.h"
#include "core/read/frame_reader.h"
#include "core/storage/storage_options.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

class RecordSource;

struct ShardSpec {
  std::string path;
  std::uint64_t file_bytes = 0;  // 0 unless planned
  std::uint64_t record_count = 0;
};

// Consecutive shards of a source whose records are read in the same way.
struct PartSpec {
  std::uint64_t shard_count = 0;
  // How to read steps from episodes (core/steps/step_spec.h). Empty if records are frames.
  std::string steps;
};

struct SourceSpec {
  static constexpr EncodedKind kEncoding{"source", "tfSR", 4};

  // Planned: all counts are known, and data with other counts are refused. Otherwise a shard is
  // opened when reading reaches it.
  bool planned = false;
  bool skip_damage = false;
  std::optional<Compression> compression = Compression::none;  // empty: detect for each shard
  Verify verify = Verify::full;
  IoMode io = IoMode::automatic;
  IndexUse index_use = IndexUse::automatic;
  std::string index_folder;
  StorageOptions storage;  // of shards that are not on this machine
  std::vector<ShardSpec> shards;
  std::vector<PartSpec> parts;  // cover all shards, in order; none if all records are frames
  // Tells sources apart that one process has opened before and after their files changed.
  std::uint64_t edition = 0;

  // Describes a source's data and options.
  static SourceSpec of(const RecordSource& source);

  std::string encode() const;
  static SourceSpec decode(std::string_view encoded);  // throws Error(invalid)
};

// Compressions as numbers, as graphs store them.
std::int64_t compression_code(std::optional<Compression> compression) noexcept;
std::optional<Compression> compression_of_code(std::int64_t code) noexcept;

}  // namespace tfrfast
