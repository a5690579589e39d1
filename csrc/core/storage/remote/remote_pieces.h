// The requested pieces of an object on a network that are still to be read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/storage/remote/remote_exchange.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// A copy to make from an answer.
struct PieceCopy {
  std::shared_ptr<RemoteRequest> request;
  std::uint64_t offset = 0;  // in the object
  std::uint8_t* out = nullptr;
  std::size_t bytes = 0;
};

// Each piece is one request. A piece is kept until as many of its bytes were read as expected, or
// until its last hold ends, so bytes that several readers announce are fetched once.
//
// Call all functions but is_empty() with the exchange's lock held. Destroy dropped requests without
// the lock: take_dropped() hands them over.
class RemotePieces {
 public:
  using Requests = std::vector<std::shared_ptr<RemoteRequest>>;
  // Pieces, by first byte and number.
  using Hold = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

  explicit RemotePieces(std::shared_ptr<const RemoteName> object) : object_(std::move(object)) {}

  bool is_empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

  // Returns the parts of the ranges outside all pieces.
  std::vector<FileRange> not_asked_for(std::span<const FileRange> ranges);
  // Makes pieces of a range outside all pieces. `kept` keeps the answers, and may be null.
  void ask_for(const FileRange& range, bool is_urgent, const std::shared_ptr<CachedObject>& kept);
  // Makes pieces of ranges outside all pieces, and bridges gaps that cost no more to read than to
  // skip.
  void ask_for_all(std::vector<FileRange> ranges, bool is_urgent,
                   const std::shared_ptr<CachedObject>& kept);
  // Each range will be read once more, as far as pieces contain it.
  void expect(std::span<const FileRange> ranges);
  // Holds the pieces that contain any part of the ranges. Ranges must be sorted and disjoint.
  Hold hold(std::span<const FileRange> ranges);
  void hurry(const Hold& hold);
  void let_go(const Hold& hold);
  void drop_all();
  // Drops the pieces that contain any part of the range. Readers of these pieces request again.
  void drop_wrong(const FileRange& range);

  // Divides a range into the parts inside pieces and the other parts.
  void divide(const ReadRange& range, std::vector<ReadRange>& in_pieces,
              std::vector<ReadRange>& others);
  // Reads the range from pieces. Adds the parts outside pieces to `others`.
  void take(const ReadRange& range, std::vector<PieceCopy>& copies, std::vector<ReadRange>& others);
  // Drops the pieces whose expected bytes were all read.
  void drop_read(std::span<const PieceCopy> copies);
  // Drops a failed piece, so that the next reader makes a new request.
  void drop_failed(const std::shared_ptr<RemoteRequest>& request);

  Requests take_dropped() { return std::exchange(dropped_, {}); }

 private:
  struct RequestedPiece {
    std::shared_ptr<RemoteRequest> request;
    std::uint64_t number = 0;
    std::uint64_t unread_bytes = 0;  // of the expected bytes
    std::uint32_t holds = 0;
    std::uint64_t end() const noexcept { return request->offset + request->bytes; }
  };
  using Pieces = std::map<std::uint64_t, RequestedPiece>;  // by first byte; disjoint

  Pieces::iterator piece_with(std::uint64_t offset);
  Pieces::iterator held(const Hold::value_type& piece);
  template <class Action>
  void for_parts(const FileRange& range, const Action& action);
  void drop(Pieces::iterator piece);

  const std::shared_ptr<const RemoteName> object_;
  Pieces pieces_;
  std::uint64_t last_number_ = 0;
  std::atomic<std::size_t> count_{0};
  Requests dropped_;
};

// Sorts the ranges, and joins ranges with at most `gap` bytes between them.
std::vector<FileRange> merged(std::vector<FileRange> ranges, std::uint64_t gap);

}  // namespace tfrfast
