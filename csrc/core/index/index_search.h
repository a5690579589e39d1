// Looks in several places for an index that fits a shard, or may fit it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/index/index_folders.h"
#include "core/index/index_places.h"
#include "core/index/shard_index.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// Where an index of a shard may be.
struct IndexPlaces {
  std::optional<IndexPlace> in_folder;
  std::optional<IndexPlace> cached;  // in the user's cache

  std::string in_words() const;
};

// What was found.
struct FoundIndex {
  std::shared_ptr<const ShardIndex> fitting;  // the first one
  // If there is none: indexes of a shard of this size, which a scan may prove right.
  std::vector<std::shared_ptr<const ShardIndex>> unproven;
  std::string why_not;  // why the last one that was looked at does not fit
};

// Whether to use the proofs in the cache, which say that an index fits although it does not seem
// to.
enum class Proofs : std::uint8_t { count, ignored };

// Looks at `places` in turn, up to the first index that fits `file`, the file as stored, with that
// compression, or with any if it is empty. One that may not be believed (own_file.h) is passed
// over, with a warning. Throws only std::bad_alloc: `why_not` says why an index cannot be used.
FoundIndex look_for_index(const IndexPlaces& places, IndexFolders& folders, const StoredFile& file,
                          std::optional<Compression> compression, Proofs proofs = Proofs::count);

// The one that `scanned` proves right; null if there is none.
std::shared_ptr<const ShardIndex> proven_by(const ShardIndex& scanned, const FoundIndex& found,
                                            const std::shared_ptr<const StoredFile>& file);

}  // namespace tfrfast
