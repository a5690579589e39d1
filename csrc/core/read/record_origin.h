// Where a record of a source comes from, for messages.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tfrfast {

struct RecordOrigin {
  std::string text;         // begins a sentence: "Record 4 of 'x'"
  std::string path;         // the shard, or empty
  std::int64_t record = 0;  // the number in the shard

  static RecordOrigin in_shard(const std::string& path, std::uint64_t number) {
    return {"Record " + std::to_string(number) + " of '" + path + "'", path,
            static_cast<std::int64_t>(number)};
  }
};

// Returns the origin of an existing record, by the record's number in its source.
using FindOrigin = std::function<RecordOrigin(std::int64_t record)>;

}  // namespace tfrfast
