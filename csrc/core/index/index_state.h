// Whether a shard is still in the state that its index describes: what is known without reading it,
// how that can be proven by reading it, and how the proof is kept.
//
// An index says what the shard's file was like when it was scanned: size and time of modification
// and, where the filesystem lets them count (StoredFile::identity_lasts), device, inode and ctime.
// If all of that is as it was, the index is believed. Times come from a clock that ticks, so what
// is changed twice within a tick looks the same afterwards. An index is therefore believed only if
// it is *settled*: no change since can have left all of it as it was.
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

// A file that was modified less than this before a scan is scanned again another time: some
// filesystems keep whole seconds, or two of them.
inline constexpr std::int64_t kRecentNs = 2'000'000'000;

// Whether a scan that begins now will make a settled index. `now_ns` is the time, `tick_ns` the
// same as the system's clock for files last ticked. Where ctime counts, it alone would do: whatever
// changes the file from now on gives it a ctime of at least `tick_ns`. The time of modification is
// judged all the same, and first, so that a clock that was set back has to be set back by as much.
bool is_settled(const FileIdentity& identity, bool identity_lasts, std::int64_t now_ns,
                std::int64_t tick_ns) noexcept;
// The same of an open file by the clocks there are. Waits for the next tick, some milliseconds, if
// the file was changed in this one.
bool await_settled(const StoredFile& file) noexcept;

// What an index says about a shard's file.
ShardFacts facts_of(const FileIdentity& identity, bool identity_lasts, std::uint64_t stream_bytes,
                    Compression compression, bool settled);

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
