// Collects the loose indexes of a folder into the folder's index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tfrfast {

enum class Merge : std::uint8_t {
  now,
  // If there are enough loose ones. Otherwise writing many shards one by one would write the
  // folder's index as many times.
  if_many,
};

// Publishes, flushed to the disk, an index of `folder` that has all sections it had and those of
// the loose indexes, and removes these. Processes that do so at the same time take turns, and a
// process that dies leaves everything as it was. Sections of shards that are no longer in the data
// folder are dropped, if `folder` is its sibling. These stay loose: indexes that cannot be used,
// those that their writer has yet to stamp, and those of other users, so that everyone still
// believes them. Returns how many were collected; 0 also where the folder is not of this machine,
// or another process keeps the lock for long. Throws Error io.
std::size_t merge_indexes(const std::string& folder, Merge when);

// The same, for those who can do without. Never throws: loose indexes serve as well.
void collect_loose_indexes(const std::string& folder, Merge when) noexcept;

}  // namespace tfrfast
