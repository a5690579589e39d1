#include "core/storage/remote/remote_pieces.h"

#include <algorithm>

namespace tfrfast {

std::vector<FileRange> merged(std::vector<FileRange> ranges, std::uint64_t gap) {
  std::sort(ranges.begin(), ranges.end(),
            [](const FileRange& a, const FileRange& b) { return a.offset < b.offset; });
  std::vector<FileRange> result;
  for (const FileRange& each : ranges) {
    if (!result.empty()) {
      FileRange& last = result.back();
      const std::uint64_t end = last.offset + last.bytes;
      if (each.offset <= end || each.offset - end <= gap) {
        last.bytes = std::max(end, each.offset + each.bytes) - last.offset;
        continue;
      }
    }
    result.push_back(each);
  }
  return result;
}

RemotePieces::Pieces::iterator RemotePieces::piece_with(std::uint64_t offset) {
  auto next = pieces_.upper_bound(offset);
  if (next == pieces_.begin()) return pieces_.end();
  --next;
  return offset < next->second.end() ? next : pieces_.end();
}

// Calls action(piece, offset, bytes) for each part of a range that a piece contains. The action may
// drop the piece.
template <class Action>
void RemotePieces::for_parts(const FileRange& range, const Action& action) {
  const std::uint64_t end = range.offset + range.bytes;
  for (std::uint64_t at = range.offset; at < end;) {
    const auto piece = piece_with(at);
    if (piece == pieces_.end()) {
      const auto next = pieces_.upper_bound(at);
      if (next == pieces_.end()) return;
      at = std::min(end, next->first);
      continue;
    }
    const std::uint64_t stop = std::min(end, piece->second.end());
    action(piece, at, stop - at);
    at = stop;
  }
}

void RemotePieces::drop(Pieces::iterator piece) {
  dropped_.push_back(piece->second.request);
  pieces_.erase(piece);
  count_.store(pieces_.size(), std::memory_order_relaxed);
  RemoteExchange::instance().let_go(dropped_.back());
}

std::vector<FileRange> RemotePieces::not_asked_for(std::span<const FileRange> ranges) {
  std::vector<FileRange> missing;
  for (const FileRange& each : ranges) {
    const std::uint64_t end = each.offset + each.bytes;
    for (std::uint64_t at = each.offset; at < end;) {
      if (const auto piece = piece_with(at); piece != pieces_.end()) {
        at = piece->second.end();
        continue;
      }
      const auto next = pieces_.upper_bound(at);
      const std::uint64_t stop = next == pieces_.end() ? end : std::min(end, next->first);
      missing.push_back({at, stop - at});
      at = stop;
    }
  }
  return missing;
}

void RemotePieces::ask_for(const FileRange& range, bool is_urgent,
                           const std::shared_ptr<CachedObject>& kept) {
  const std::uint64_t end = range.offset + range.bytes;
  for (std::uint64_t begin = range.offset; begin < end;) {
    auto request = std::make_shared<RemoteRequest>();
    request->object = object_;
    request->offset = begin;
    request->bytes = std::min<std::uint64_t>(kRemoteTraits.request_bytes, end - begin);
    request->is_urgent = is_urgent;
    request->users = 1;
    request->cache = kept;
    RemoteExchange::instance().add(request);
    begin += request->bytes;
    const std::uint64_t offset = request->offset;
    pieces_.emplace(offset, RequestedPiece{std::move(request), ++last_number_});
    count_.store(pieces_.size(), std::memory_order_relaxed);
  }
}

void RemotePieces::ask_for_all(std::vector<FileRange> ranges, bool is_urgent,
                               const std::shared_ptr<CachedObject>& kept) {
  const std::vector<FileRange> wanted = merged(std::move(ranges), 0);
  for (const FileRange& each : not_asked_for(merged(wanted, kRemoteTraits.gap_bytes))) {
    // Between two existing pieces, there may be nothing but a gap.
    const std::uint64_t limit = each.offset + each.bytes;
    const auto first = std::partition_point(
        wanted.begin(), wanted.end(),
        [&](const FileRange& range) { return range.offset + range.bytes <= each.offset; });
    const auto after = std::partition_point(
        first, wanted.end(), [&](const FileRange& range) { return range.offset < limit; });
    if (first == after) continue;
    const FileRange& last = *(after - 1);
    const std::uint64_t begin = std::max(each.offset, first->offset);
    const std::uint64_t end = std::min(limit, last.offset + last.bytes);
    ask_for({begin, end - begin}, is_urgent, kept);
  }
}

void RemotePieces::expect(std::span<const FileRange> ranges) {
  for (const FileRange& each : ranges) {
    for_parts(each, [](auto piece, std::uint64_t, std::uint64_t count) {
      piece->second.unread_bytes += count;
    });
  }
}

RemotePieces::Hold RemotePieces::hold(std::span<const FileRange> ranges) {
  Hold hold;
  for (const FileRange& each : ranges) {
    for_parts(each, [&hold](auto piece, std::uint64_t, std::uint64_t) {
      const Hold::value_type found(piece->first, piece->second.number);
      if (!hold.empty() && hold.back() == found) return;
      hold.push_back(found);
      ++piece->second.holds;
    });
  }
  return hold;
}

// Returns the piece, unless the piece was dropped.
RemotePieces::Pieces::iterator RemotePieces::held(const Hold::value_type& piece) {
  const auto found = pieces_.find(piece.first);
  return found != pieces_.end() && found->second.number == piece.second ? found : pieces_.end();
}

void RemotePieces::hurry(const Hold& hold) {
  for (const auto& each : hold) {
    const auto piece = held(each);
    if (piece != pieces_.end()) RemoteExchange::instance().hurry(piece->second.request);
  }
}

void RemotePieces::let_go(const Hold& hold) {
  for (const auto& each : hold) {
    const auto piece = held(each);
    if (piece != pieces_.end() && --piece->second.holds == 0) drop(piece);
  }
}

void RemotePieces::drop_all() {
  while (!pieces_.empty()) drop(pieces_.begin());
}

void RemotePieces::drop_wrong(const FileRange& range) {
  for_parts(range, [this](auto piece, std::uint64_t, std::uint64_t) { drop(piece); });
}

void RemotePieces::divide(const ReadRange& range, std::vector<ReadRange>& in_pieces,
                          std::vector<ReadRange>& others) {
  std::uint64_t at = range.offset;
  const auto add = [&](std::vector<ReadRange>& to, std::uint64_t end) {
    if (end > at) {
      to.push_back({at, range.out + (at - range.offset), static_cast<std::size_t>(end - at)});
    }
    at = end;
  };
  for_parts({range.offset, range.bytes}, [&](auto, std::uint64_t begin, std::uint64_t count) {
    add(others, begin);
    add(in_pieces, begin + count);
  });
  add(others, range.offset + range.bytes);
}

void RemotePieces::take(const ReadRange& range, std::vector<PieceCopy>& copies,
                        std::vector<ReadRange>& others) {
  RemoteExchange& exchange = RemoteExchange::instance();
  std::uint64_t taken_to = range.offset;
  const auto pass_over = [&](std::uint64_t end) {
    if (end == taken_to) return;
    others.push_back({taken_to, range.out + (taken_to - range.offset),
                      static_cast<std::size_t>(end - taken_to)});
  };
  for_parts({range.offset, range.bytes}, [&](auto piece, std::uint64_t at, std::uint64_t count) {
    pass_over(at);
    taken_to = at + count;
    std::uint8_t* const out = range.out + (at - range.offset);
    const auto& request = piece->second.request;
    exchange.hurry(request);
    ++request->users;
    copies.push_back({request, at, out, static_cast<std::size_t>(count)});
    std::uint64_t& unread = piece->second.unread_bytes;
    unread -= std::min(unread, count);
    if (unread == 0) exchange.stop_counting(*request);
  });
  pass_over(range.offset + range.bytes);
}

void RemotePieces::drop_read(std::span<const PieceCopy> copies) {
  for (const PieceCopy& each : copies) {
    const auto piece = piece_with(each.offset);
    if (piece != pieces_.end() && piece->second.unread_bytes == 0) drop(piece);
  }
}

void RemotePieces::drop_failed(const std::shared_ptr<RemoteRequest>& request) {
  const auto piece = piece_with(request->offset);
  if (piece != pieces_.end() && piece->second.request == request) drop(piece);
}

}  // namespace tfrfast
