// Decides whether to believe tfrfast's own files about data.
#pragma once

#include <string>

#include "core/index/shard_set.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// Throws Error stale_index if someone who may write the file may not write all of the data
// (own_file.h). `what` is "The key file", and `advice` says what to do.
void refuse_unless_believed(const StoredFile& file, const ShardSet& data, const std::string& what,
                            const std::string& advice);

}  // namespace tfrfast
