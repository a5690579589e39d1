// What has been asked for of an object on a network, and is still to be read.
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

// Copies bytes of an answer.
struct PieceCopy {
  std::shared_ptr<RemoteRequest> request;
  std::uint64_t offset = 0;  // in the object
  std::uint8_t* out = nullptr;
  std::size_t bytes = 0;
};

// Each piece is one request. It is kept until as many of its bytes were read as were expected to
// be, or nobody holds it any more, so what several readers announce is fetched once.
//
// All but is_empty() is called with the exchange's lock held. What is dropped meanwhile has to be
// destroyed without it: take_dropped() hands it over.
class RemotePieces {
 public:
  using Requests = std::vector<std::shared_ptr<RemoteRequest>>;
  // Pieces, by their first bytes and numbers.
  using Hold = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

  explicit RemotePieces(std::shared_ptr<const RemoteName> object) : object_(std::move(object)) {}

  bool is_empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

  // The parts of the ranges that no piece has.
  std::vector<FileRange> not_asked_for(std::span<const FileRange> ranges);
  // Makes pieces of a range that none has. `kept` keeps the answers; null if nothing does.
  void ask_for(const FileRange& range, bool is_urgent, const std::shared_ptr<CachedObject>& kept);
  // Makes pieces of ranges that none has, and bridges gaps between them that cost no more to read
  // than to skip.
  void ask_for_all(std::vector<FileRange> ranges, bool is_urgent,
                   const std::shared_ptr<CachedObject>& kept);
  // They will be read once, as far as they are in pieces.
  void expect(std::span<const FileRange> ranges);
  // Holds the pieces that have any of the ranges, which are sorted and do not overlap.
  Hold hold(std::span<const FileRange> ranges);
  void hurry(const Hold& hold);
  void let_go(const Hold& hold);
  void drop_all();
  // Those that have any of the range. Whoever expects it asks again.
  void drop_wrong(const FileRange& range);

  // Divides a range into the parts that pieces have and the others.
  void divide(const ReadRange& range, std::vector<ReadRange>& in_pieces,
              std::vector<ReadRange>& others);
  // The range is read now. Parts that no piece has are added to `others`, unless that is null.
  void take(const ReadRange& range, std::vector<PieceCopy>& copies,
            std::vector<ReadRange>* others = nullptr);
  // The pieces of which everything that was expected is taken.
  void drop_read(std::span<const PieceCopy> copies);
  // Whoever asks again asks the network again.
  void drop_failed(const std::shared_ptr<RemoteRequest>& request);

  Requests take_dropped() { return std::exchange(dropped_, {}); }

 private:
  struct Piece {
    std::shared_ptr<RemoteRequest> request;
    std::uint64_t number = 0;
    std::uint64_t unread_bytes = 0;  // of those that were expected
    std::uint32_t holds = 0;
    std::uint64_t end() const noexcept { return request->offset + request->bytes; }
  };
  using Pieces = std::map<std::uint64_t, Piece>;  // by their first byte; they do not overlap

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

// Sorted, with those that touch, or have at most `gap` bytes between them, as one.
std::vector<FileRange> merged(std::vector<FileRange> ranges, std::uint64_t gap);

}  // namespace tfrfast
