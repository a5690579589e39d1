// Objects on a network, read in requests for ranges of their bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/storage/cache/cached_object.h"
#include "core/storage/remote/remote_exchange.h"
#include "core/storage/remote/remote_pieces.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

std::shared_ptr<const StoredFile> open_remote_file(const std::string& url, IoMode mode,
                                                   const std::string& access);
// An object about which this much is known. Asks for nothing: if it is another one by now, reading
// it is Error stale_index.
std::shared_ptr<const StoredFile> open_listed_file(const std::string& url, IoMode mode,
                                                   const std::string& access,
                                                   const FileFacts& facts, std::string version);
FileFacts examine_remote_file(const std::string& url, const std::string& access);

// Every request names the version of the object that was opened, so bytes of another one are never
// returned. What was announced is kept until it has been read, or is withdrawn.
//
// With a cache, what is there is read from there, and what comes is kept there, as far as there is
// space. Once all of the object is there and was looked at, it is read like a file of this machine.
class RemoteFile final : public StoredFile {
 public:
  // `access` is what it was opened with. `set` is null without a cache; `may_map` says whether a
  // whole copy may be mapped.
  RemoteFile(std::shared_ptr<const RemoteName> name, const FileFacts& facts, std::string access,
             std::shared_ptr<const CacheSet> set, bool may_map);
  ~RemoteFile() override;

  std::string access() const override { return access_; }
  FileFacts facts_now() const override;
  bool await_settled() const noexcept override;

  using StoredFile::read;
  void read(std::span<const ReadRange> ranges) const override;
  std::unique_ptr<Announcement> announce(std::span<const FileRange> ranges,
                                         Reads reads) const noexcept override;
  bool mend(const FileRange& range) const noexcept override;
  bool is_cached(std::uint64_t offset) const noexcept override;
  bool is_copy() const noexcept override { return mapping() != nullptr; }
  void count_mapped(std::uint64_t bytes) const noexcept override;

 private:
  class Announced;
  struct Fetched {
    std::vector<FileRange> unasked;  // by anybody before
    std::vector<FileRange> claimed;  // of the cache, in whole pages
  };

  // The object in the cache; null if there is none.
  const std::shared_ptr<CachedObject>& cache() const noexcept;
  std::shared_ptr<CachedObject> open_cache() const noexcept;
  Fetched fetch(std::span<const FileRange> wanted, const std::shared_ptr<CachedObject>& cache,
                bool is_urgent, std::unique_lock<std::mutex>& lock) const;
  // The parts of the ranges that the cache does not have. Copies the others.
  std::vector<ReadRange> read_cached(std::span<const ReadRange> ranges, CachedObject& cache) const;
  void read_with_cache(std::span<const ReadRange> ranges,
                       const std::shared_ptr<CachedObject>& cache) const;
  // Waits while others fetch any of the ranges. False if that took too long.
  bool await_others(std::span<const ReadRange> ranges, const CachedObject& cache) const;
  void map_if_whole(const CachedObject& cache) const noexcept;
  // Asks the network, whatever is there already.
  std::shared_ptr<RemoteRequest> fetch_anew(const FileRange& range) const;

  std::vector<FileRange> within(std::span<const FileRange> ranges) const;
  void copy_all(std::vector<PieceCopy>& copies) const;
  void again(const PieceCopy& copy) const;

  const std::shared_ptr<const RemoteName> name_;
  const std::string access_;
  const std::shared_ptr<const CacheSet> set_;
  const bool may_map_;
  // Null until it is first needed. What it points at is null if there is none.
  mutable std::atomic<std::shared_ptr<CachedObject>*> cache_{nullptr};
  mutable RemotePieces pieces_;
};

}  // namespace tfrfast
