#include "core/index/believed.h"

#include "core/base/error.h"
#include "core/storage/local/own_file.h"

namespace tfrfast {

void refuse_unless_believed(const StoredFile& file, const ShardSet& data, const std::string& what,
                            const std::string& advice) {
  const Writers& writers = file.facts().writers;
  for (std::size_t shard = 0; shard < data.size(); ++shard) {
    const Writers& of_shard = data.slot(shard).file_facts().writers;
    if (may_be_believed(writers, of_shard)) continue;
    throw Error(ErrorKind::stale_index,
                what + " '" + file.path() + "' is not used: " +
                    why_not_believed(writers, data.slot(shard).path(), of_shard) + ". " + advice,
                {file.path(), {}, {}});
  }
}

}  // namespace tfrfast
