// Whether a shard is still in the state that its index describes: what is known without reading the
// shard, how reading it proves an index, and how the proof is kept.
//
// An index says what the shard's file was like when it was scanned: its size, its modification time
// and, where the storage keeps versions for good, its version. If all of that is the same now, the
// index is believed, but only if it is *settled*: any change since would have changed some of it.
//
// A scan makes a settled index if it begins late enough after the last change. A writer, which
// knows the bytes without a scan, sets the modification time back by the smallest step that the
// filesystem knows. No later write can give that time, and setting it by hand changes ctime.
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

// Whether a file that has the facts `now` may be in the state that `facts` describe, which must be
// settled.
bool is_in_state(const ShardFacts& facts, const FileFacts& now) noexcept;

// Whether `file`, the file as stored, is in the state that `facts` describe, which must be settled.
// Also compares the headers of the first, the last and two other records with `index` or, for a
// compressed shard, the bytes at as many seek points. Throws Error io, and stale_index if the
// entries of these records are damaged.
bool is_in_state(const ShardFacts& facts, const ShardIndex& index, const StoredFile& file);

// Whether `index` describes `file` as it is now.
inline bool index_fits(const ShardIndex& index, const StoredFile& file) {
  return is_in_state(index.facts(), index, file);
}

// Whether `file` has the damage that `index` claims, and so no records there: finds out what a scan
// would find. A claim costs as much as the damaged bytes take to read. What a compressed shard
// cannot inflate is known after a scan alone, so its claims are false. Objects of a far storage are
// believed. Throws Error io.
bool has_claimed_damage(const ShardIndex& index, const StoredFile& file);

// Whether the frames of a few dozen records are others than those that were indexed. False where
// that is not known, or where the state tells already: where versions last. Reads 16 bytes of each
// of these records. Throws Error io, truncated, and stale_index if the index is damaged.
bool samples_differ(const ShardIndex& index, const StoredFile& file);

// Whether `index` describes what a scan of `file` has just found. Its seek points may differ from
// the scan's if the same bytes inflate from them.
bool is_proven_by(const ShardIndex& scanned, const ShardIndex& index,
                  const std::shared_ptr<const StoredFile>& file);

// Writes a small file that says that `index`, which was loaded from a file, describes the shard in
// the state `facts`. Not flushed, because a torn proof is recognised and ignored. Throws Error io.
void save_proof(const std::string& path, const ShardIndex& index, const ShardFacts& facts);
// The facts of a proof at `path`; empty if there is none for this index.
std::optional<ShardFacts> load_proof(const std::string& path, const ShardIndex& index);

// What an index says of its shard's file after the shard's writer, or somebody who has moved the
// shard, has published it at `path`, which changes its version. They are settled if nobody else can
// have changed the file since `facts` described it: no other write can give it the time that the
// writer has given it. Otherwise the shard is scanned once. Throws Error io.
ShardFacts facts_when_published(ShardFacts facts, const std::string& path);

}  // namespace tfrfast
