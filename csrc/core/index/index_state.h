// Decides whether a shard is still in the state that its index describes: from facts known without
// reading the shard, and from proofs that reading the shard has given.
//
// An index holds the facts of the shard's file at the walk: the size, the modification time and, if
// the storage keeps versions for good, the version. If all facts are unchanged, the index is
// believed, but only if the index is *settled*: any later change would have changed a fact.
//
// A walk makes a settled index if it begins long enough after the last change. A writer knows the
// bytes without a walk. It sets the modification time back by the smallest step of the filesystem.
// No later write can give that time, and setting the time by hand changes ctime.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/index/shard_index.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// The facts that an index stores about a shard's file.
ShardFacts facts_of(const FileFacts& file, std::uint64_t stream_bytes, Compression compression,
                    bool settled);

// Whether a file with the facts `now` may be in the state that `facts` describe. `facts` must be
// settled.
bool is_in_state(const ShardFacts& facts, const FileFacts& now) noexcept;

// Whether `file`, the file as stored, is in the state that `facts` describe. `facts` must be
// settled. Also compares the headers of the first, the last and two other records with `index` or,
// for a compressed shard, the bytes at as many seek points. Throws Error io, and stale_index if the
// entries of these records are damaged.
bool is_in_state(const ShardFacts& facts, const ShardIndex& index, const StoredFile& file);

// Whether `index` describes the present state of `file`.
inline bool index_fits(const ShardIndex& index, const StoredFile& file) {
  return is_in_state(index.facts(), index, file);
}

// Whether `file` has the damage that `index` claims, and so no records there. Repeats the search of
// a walk, at the cost of reading the damaged bytes. Only a walk can verify damage of a compressed
// shard, so such claims count as false. Objects of a remote storage are believed. Throws Error io.
bool has_claimed_damage(const ShardIndex& index, const StoredFile& file);

// Whether the frames of a few dozen records differ from the indexed frames. False if the index has
// no samples, or if the storage's versions last: then an unchanged state is proof enough. Reads 16
// bytes per sampled record. Throws Error io, truncated, and stale_index if the index is damaged.
bool samples_differ(const ShardIndex& index, const StoredFile& file);

// Whether `index` describes the result of a walk of `file`. The seek points may differ from the
// walk's if the same bytes inflate from them.
bool is_proven_by(const ShardIndex& walked, const ShardIndex& index,
                  const std::shared_ptr<const StoredFile>& file);

// Writes a small file that says that `index`, which must come from a file, describes the shard in
// the state `facts`. Not flushed: a torn proof is recognised and ignored. Throws Error io.
void save_proof(const std::string& path, const ShardIndex& index, const ShardFacts& facts);
// The facts of the proof at `path`. Empty without a proof for this index.
std::optional<ShardFacts> load_proof(const std::string& path, const ShardIndex& index);

// The facts for an index after the shard was published at `path`, by its writer or by a process
// that moved the shard. Publishing changes the version. The facts are settled if nobody else can
// have changed the file since `facts` was taken: no other write can give the file the writer's
// modification time. Otherwise the shard is walked once. Throws Error io.
ShardFacts facts_when_published(ShardFacts facts, const std::string& path);

}  // namespace tfrfast
