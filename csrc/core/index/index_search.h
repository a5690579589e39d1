// Whether an index lies at one of some places that fits a shard, or may.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/index/shard_index.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// What lies where an index may be.
struct FoundIndex {
  std::shared_ptr<const ShardIndex> fitting;  // the first one
  // If there is none: those of a shard of this size, which a scan may prove right.
  std::vector<std::shared_ptr<const ShardIndex>> unproven;
  std::string why_not;  // why what is there does not fit
};

// Whether the cache's proofs count that an index fits which does not seem to.
enum class Proofs : std::uint8_t { count, ignored };

// Looks at `places` in turn, up to the first index that fits `file`, as it lies on the disk, with
// that compression. One that belongs to neither this user, nor root, nor the shard's owner is
// passed over, with a warning. Throws nothing but std::bad_alloc: what cannot be used is told in
// `why_not`.
FoundIndex look_for_index(const std::vector<std::string>& places, const StoredFile& file,
                          Compression compression, Proofs proofs = Proofs::count);

// The one that `scanned` proves right; null if there is none.
std::shared_ptr<const ShardIndex> proven_by(const ShardIndex& scanned, const FoundIndex& found,
                                            const std::shared_ptr<const StoredFile>& file);

}  // namespace tfrfast
