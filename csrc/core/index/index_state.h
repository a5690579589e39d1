// Decides whether a shard is still in the state that its index describes, from facts that are known
// without a walk.
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

// Whether `index` describes the present state of `file`, the file as stored. Also compares the
// headers of the first, the last and two other records or, for a compressed shard, the bytes at as
// many seek points. Throws Error io, and stale_index if the entries of these records are damaged.
bool index_fits(const ShardIndex& index, const StoredFile& file);

// Whether `file` has the damage that `index` claims, and so no records there. Repeats the search of
// a walk, at the cost of reading the damaged bytes. Only a walk can verify damage of a compressed
// shard, so such claims count as false. Objects of a remote storage are believed. Throws Error io.
bool has_claimed_damage(const ShardIndex& index, const StoredFile& file);

// Whether the frames of a few dozen records differ from the indexed frames. False if the index has
// no samples, or if the storage's versions last: then an unchanged state is proof enough. Reads 16
// bytes per sampled record. Throws Error io, truncated, and stale_index if the index is damaged.
bool samples_differ(const ShardIndex& index, const StoredFile& file);

// The facts for an index after the shard was published at `path`, by its writer or by a process
// that moved the shard. Publishing changes the version. The facts are settled if nobody else can
// have changed the file since `facts` was taken: no other write can give the file the writer's
// modification time. Otherwise the shard is walked once. Throws Error io.
ShardFacts facts_when_published(ShardFacts facts, const std::string& path);

}  // namespace tfrfast
