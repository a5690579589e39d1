// Whether a shard is still in the state that its index describes: what is known without reading it,
// how that can be proven by reading it, and how the proof is kept.
//
// An index says what the shard's file was like when it was scanned: size, time of modification and,
// where the storage keeps versions for good, its version. If all of that is as it was, the index is
// believed, but only if it is *settled*: no change since can have left all of it as it was.
//
// A scan settles an index if it begins late enough after the last change. A writer, which knows the
// bytes without a scan, sets the time of modification back by the least the filesystem can tell: no
// write that comes later can give that time, and who sets it by hand changes ctime.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/index/shard_index.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// What an index says about a shard's file.
ShardFacts facts_of(const FileFacts& file, std::uint64_t stream_bytes, Compression compression,
                    bool settled);

// Whether `file`, as it lies on the disk, is in the state that `facts` tell, settled, and the
// headers of the first, the last and two other records of `index` are where it says; of a
// compressed shard, the bytes at so many seek points. Throws Error io.
bool is_in_state(const ShardFacts& facts, const ShardIndex& index, const StoredFile& file);

// Whether `index` describes `file`: it is in the state that the index tells.
inline bool index_fits(const ShardIndex& index, const StoredFile& file) {
  return is_in_state(index.facts(), index, file);
}

// Whether `index` describes what a scan of `file` has just found. Seek points may lie elsewhere
// than the scan's, if the same bytes inflate from them.
bool is_proven_by(const ShardIndex& scanned, const ShardIndex& index,
                  const std::shared_ptr<const StoredFile>& file);

// A small file that says: `index`, one of a file, describes the shard in the state that `facts`
// tell. Not flushed: a torn one is none. Throws Error io.
void save_proof(const std::string& path, const ShardIndex& index, const ShardFacts& facts);
// The facts of a proof at `path`; empty if there is none for this index.
std::optional<ShardFacts> load_proof(const std::string& path, const ShardIndex& index);

// Tells the index file at `index_path`, made by the writer of the shard at `shard_path`, what the
// system has made of the shard's identity when it got its name, and settles it. True if it was
// theirs. A failure only means that the shard is scanned once.
bool stamp_index(const std::string& index_path, const std::string& shard_path) noexcept;

}  // namespace tfrfast
