// Searches several places for an index that fits a shard, or may fit.
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

// The possible places of a shard's index.
struct IndexPlaces {
  std::optional<IndexPlace> in_folder;
  std::optional<IndexPlace> cached;  // in the user's cache

  std::string in_words() const;
};

// The result of a search.
struct FoundIndex {
  std::shared_ptr<const ShardIndex> fitting;  // the first index that fits
  // Without a fitting index: indexes of shards of this size, which a walk may prove right.
  std::vector<std::shared_ptr<const ShardIndex>> unproven;
  std::string why_not;  // why the last examined index does not fit
};

// Whether proofs in the cache count. A proof says that an index fits despite appearances.
enum class Proofs : std::uint8_t { count, ignored };

// Examines `places` in turn, up to the first index that fits `file`, the file as stored, with
// `compression`, or with any compression if empty. Skips an index that may not be believed
// (own_file.h), with a warning. Throws only std::bad_alloc: `why_not` says why an index cannot be
// used.
FoundIndex look_for_index(const IndexPlaces& places, IndexFolders& folders, const StoredFile& file,
                          std::optional<Compression> compression, Proofs proofs = Proofs::count);

// The index that `walked` proves right, or null.
std::shared_ptr<const ShardIndex> proven_by(const ShardIndex& walked, const FoundIndex& found,
                                            const std::shared_ptr<const StoredFile>& file);

}  // namespace tfrfast
