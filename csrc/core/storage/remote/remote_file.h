// Objects on a network, read by requests for ranges of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/storage/cache/cached_object.h"
#include "core/storage/remote/remote_exchange.h"
#include "core/storage/remote/remote_pieces.h"
#include "core/storage/storage_options.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

std::shared_ptr<const StoredFile> open_remote_file(const std::string& url, IoMode mode,
                                                   const StorageOptions& options);
// Opens an object with known facts, without a request. If the object has changed, reading throws
// Error stale_index.
std::shared_ptr<const StoredFile> open_listed_file(const std::string& url, IoMode mode,
                                                   const StorageOptions& options,
                                                   const FileFacts& facts, std::string version);
FileFacts examine_remote_file(const std::string& url, const StorageOptions& options);

// Every request names the opened version, so bytes of another version are never returned. Announced
// bytes are kept until they are read or withdrawn.
//
// With a cache, bytes in the cache are read from the cache, and fetched bytes are kept there if
// space allows. Once the whole object is in the cache and was verified, the object is read like a
// local file.
class RemoteFile final : public StoredFile {
 public:
  // `set` is null without a cache. `may_map` says whether a whole copy may be mapped.
  RemoteFile(std::shared_ptr<const RemoteName> name, const FileFacts& facts, StorageOptions options,
             std::shared_ptr<const CacheSet> set, bool may_map);
  ~RemoteFile() override;

  const StorageOptions& options() const noexcept override { return options_; }
  FileFacts facts_now() const override;
  bool await_settled() const noexcept override;

  using StoredFile::read;
  void read(std::span<const ReadRange> ranges) const override;
  std::unique_ptr<Announcement> announce(std::span<const FileRange> ranges,
                                         Reads reads) const noexcept override;
  bool mend(const FileRange& range) const noexcept override;
  bool is_cached(std::uint64_t offset) const noexcept override;

 private:
  class Announced;
  struct Fetched {
    std::vector<FileRange> unasked;  // ranges not requested before
    std::vector<FileRange> missing;  // ranges that the cache lacks
  };

  // The object in the cache. Null without a cache.
  const std::shared_ptr<CachedObject>& cache() const noexcept;
  std::shared_ptr<CachedObject> open_cache() const noexcept;
  Fetched fetch(std::span<const FileRange> wanted, const std::shared_ptr<CachedObject>& cache,
                bool is_urgent, std::unique_lock<std::mutex>& lock) const;
  // Copies the cached parts of the ranges. Returns the other parts.
  std::vector<ReadRange> read_cached(std::span<const ReadRange> ranges, CachedObject& cache) const;
  void map_if_whole(const CachedObject& cache) const noexcept;
  // Requests the range from the network, even if its bytes are present.
  std::shared_ptr<RemoteRequest> fetch_anew(const FileRange& range) const;

  std::vector<FileRange> within(std::span<const FileRange> ranges) const;
  void copy_all(std::vector<PieceCopy>& copies) const;

  const std::shared_ptr<const RemoteName> name_;
  const StorageOptions options_;
  const std::shared_ptr<const CacheSet> set_;
  const bool may_map_;
  const LazyCachedObject cache_;
  mutable RemotePieces pieces_;
};

}  // namespace tfrfast
