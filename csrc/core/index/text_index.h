// Text indexes of other tools (NVIDIA DALI's tfrecord2idx, the `tfrecord` package). A record is a
// line "<offset of its header> <length of its whole frame>".
#pragma once

#include <memory>
#include <string>

#include "core/index/shard_index.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// Publishes the file whole, or not at all. Throws Error io.
void export_text_index(const ShardIndex& index, const std::string& path);

// Reads `path` as the index of `file`. The frames must be contiguous from byte 0 to the shard's
// end, and equal to the frames that a walk finds, because an imported index is believed from then
// on. Error invalid says which line does not fit.
std::shared_ptr<const ShardIndex> import_text_index(const std::string& path,
                                                    const std::shared_ptr<const StoredFile>& file);

}  // namespace tfrfast
