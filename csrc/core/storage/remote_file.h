// Objects on a network, read in requests for ranges of their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/storage/remote_exchange.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// At most this much is read ahead, in the whole process, before it is used.
inline constexpr std::uint64_t kMaxAheadBytes = std::uint64_t{256} << 20;

inline constexpr StorageTraits kRemoteTraits = {
    true, 64 << 10, std::size_t{8} << 20, 64, kMaxAheadBytes,
};

std::shared_ptr<const StoredFile> open_remote_file(const std::string& url, IoMode mode,
                                                   const std::string& access);
// An object about which this much is known. Asks for nothing: if it is another one by now, reading
// it is Error stale_index.
std::shared_ptr<const StoredFile> open_listed_file(const std::string& url,
                                                   const std::string& access,
                                                   const FileFacts& facts, std::string version);
FileFacts examine_remote_file(const std::string& url, const std::string& access);

// Every request names the version of the object that was opened, so bytes of another one are never
// returned. What was announced is kept until it has been read, or until it is forgotten.
class RemoteFile final : public StoredFile {
 public:
  RemoteFile(std::shared_ptr<const RemoteName> name, const FileFacts& facts);
  ~RemoteFile() override;

  std::string access() const override { return name_->access; }
  FileFacts facts_now() const override;
  bool await_settled() const noexcept override;

  using StoredFile::read;
  void read(std::span<const ReadRange> ranges) const override;
  void announce(std::span<const FileRange> ranges) const noexcept override;
  void forget_announced() const noexcept override;

 private:
  // Bytes that were asked for, and how many of them are still to be read by those who did.
  struct Piece {
    std::shared_ptr<RemoteRequest> request;
    std::uint64_t unread_bytes = 0;
    std::uint64_t end() const noexcept { return request->offset + request->bytes; }
  };
  // Copies bytes of an answer.
  struct Copy {
    std::shared_ptr<RemoteRequest> request;
    std::uint64_t offset = 0;  // in the object
    std::uint8_t* out = nullptr;
    std::size_t bytes = 0;
  };
  using Pieces = std::map<std::uint64_t, Piece>;  // by their first byte; they do not overlap

  // These are called with the exchange's lock held.
  Pieces::iterator piece_with(std::uint64_t offset) const;
  template <class Action>
  void for_parts(const FileRange& range, const Action& action) const;
  std::vector<FileRange> not_asked_for(std::span<const FileRange> ranges) const;
  void ask_for(std::vector<FileRange> ranges, bool is_urgent) const;
  void expect(std::span<const FileRange> ranges) const;
  void take_parts(const ReadRange& range, std::vector<Copy>& copies) const;
  void drop(Pieces::iterator piece) const;

  // These take it.
  void copy_all(std::vector<Copy>& copies) const;
  void again(const Copy& copy) const;

  const std::shared_ptr<const RemoteName> name_;
  mutable Pieces pieces_;
  // Requests that are no longer wanted, until the lock is given back.
  mutable std::vector<std::shared_ptr<RemoteRequest>> dropped_;
};

}  // namespace tfrfast
