#include "core/index/shard_slot.h"

#include <cerrno>

#include "core/base/error.h"
#include "core/index/index_state.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/local_file.h"
#include "core/storage/remote/remote_file.h"

namespace tfrfast {
namespace {

[[noreturn]] void refuse_changed(const std::string& path, const std::string& what) {
  throw Error(ErrorKind::stale_index,
              "'" + path + "' " + what +
                  " after its data set had been opened, and before it was first read. Open the "
                  "data set again.",
              {path, {}, {}});
}

// Opens the file if it is unchanged. Reading an object notices a change by itself.
std::shared_ptr<const StoredFile> open_unchanged(const LazyShard& shard, const std::string& name) {
  const LazyFolder& folder = *shard.folder;
  const FileFacts& then = shard.facts;
  const std::string path = folder.prefix + name;
  if (folder.is_remote)
    return open_listed_file(path, folder.io, folder.options, then, shard.version);
  std::shared_ptr<const StoredFile> file;
  try {
    file = open_local_file(path, folder.io, folder.absolute_prefix + name);
  } catch (const Error& error) {
    const int reason = error.system_error();
    if (reason == ENOENT || reason == ENOTDIR) refuse_changed(path, "was removed");
    if (reason == EISDIR || error.kind() == ErrorKind::invalid)
      refuse_changed(path, "was replaced");
    throw;
  }
  if (file->is_still(then)) return file;
  const FileFacts& now = file->facts();
  if (now.bytes != then.bytes) {
    refuse_changed(path, "changed from " + std::to_string(then.bytes) + " to " +
                             std::to_string(now.bytes) + " bytes");
  }
  refuse_changed(path, is_same_file(now, then) ? "changed" : "was replaced by another file");
}

}  // namespace

const IndexedShard& ShardSlot::open() const {
  if (const IndexedShard* const known = opened(); known != nullptr) return *known;
  const auto file = open_unchanged(lazy_, std::string(lazy_name()));
  const std::string& path = file->path();
  const std::shared_ptr<const ShardIndex> index = lazy_.index->open(*lazy_.entry);
  if (!index_fits(*index, *file)) {
    throw Error(
        ErrorKind::stale_index,
        "Index '" + index->origin() + "' was made for another state of '" + path +
            "': records do not begin where it says. Build it again: `tfrfast index --force " +
            path + "`.",
        {path, {}, {}});
  }
  auto made = std::make_unique<const IndexedShard>(
      IndexedShard{as_indexed(file, *index, lazy_.folder->options), index, false, index->origin()});
  const IndexedShard* other = nullptr;
  if (opened_.compare_exchange_strong(other, made.get(), std::memory_order_acq_rel)) {
    return *made.release();
  }
  return *other;  // another thread has opened the shard
}

std::string_view ShardSlot::lazy_name() const noexcept {
  return lazy_.index->name_of(*lazy_.entry);
}

std::string ShardSlot::path() const {
  if (lazy_.entry == nullptr) return opened()->file->path();
  return lazy_.folder->prefix + std::string(lazy_name());
}

std::string ShardSlot::name() const {
  return lazy_.entry == nullptr ? name_of(opened()->file->path()) : std::string(lazy_name());
}

const FileFacts& ShardSlot::file_facts() const noexcept {
  return lazy_.entry == nullptr ? opened()->file->facts() : lazy_.facts;
}

std::uint64_t ShardSlot::file_bytes() const noexcept {
  return lazy_.entry == nullptr ? opened()->index->facts().file_bytes : entry().file_bytes;
}

std::uint64_t ShardSlot::stream_bytes() const noexcept {
  return lazy_.entry == nullptr ? opened()->file->bytes() : entry().stream_bytes;
}

std::uint64_t ShardSlot::record_count() const noexcept {
  return lazy_.entry == nullptr ? opened()->index->record_count() : entry().record_count;
}

Compression ShardSlot::compression() const noexcept {
  return lazy_.entry == nullptr ? opened()->index->facts().compression
                                : static_cast<Compression>(entry().compression);
}

SlotIndex ShardSlot::index() const {
  if (const IndexedShard* const shard = opened(); shard != nullptr) return {shard->index, {}, {}};
  return {{}, lazy_.index, lazy_.entry};
}

const std::string& ShardSlot::index_path() const noexcept {
  return lazy_.entry == nullptr ? opened()->index->origin() : lazy_.index->path();
}

bool ShardSlot::is_inflated() const noexcept {
  return lazy_.entry == nullptr ? opened()->file->is_inflated()
                                : compression() != Compression::none;
}

bool ShardSlot::is_remote() const noexcept {
  const IndexedShard* const known = opened();
  return known != nullptr ? known->file->traits().is_remote : lazy_.folder->is_remote;
}

}  // namespace tfrfast
