#include "core/storage/remote_file.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/storage/listed_objects.h"

namespace tfrfast {
namespace {

using State = RemoteRequest::State;

// An object without a version that lasts may change twice within a second of its server's clock,
// which need not be ours.
constexpr std::int64_t kRestNs = std::int64_t{60} * 1'000'000'000;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::shared_ptr<RemoteRequest> examine(const std::string& url, const std::string& access) {
  RemoteExchange& exchange = RemoteExchange::instance();
  const auto request = std::make_shared<RemoteRequest>();
  request->kind = RemoteRequest::Kind::examine;
  request->object = std::make_shared<const RemoteName>(RemoteName{url, access, ""});
  request->is_urgent = true;
  request->users = 1;
  exchange.start_client();
  std::unique_lock lock(RemoteExchange::mutex());
  exchange.add(request);
  try {
    exchange.wait_for(request, lock);
  } catch (...) {
    const std::lock_guard again(RemoteExchange::mutex());
    exchange.let_go(request);
    throw;
  }
  if (request->error) throw *request->error;
  return request;
}

// Sorted, with those that touch, or have at most `gap` bytes between them, as one.
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

}  // namespace

FileFacts examine_remote_file(const std::string& url, const std::string& access) {
  return examine(url, access)->facts;
}

std::shared_ptr<const StoredFile> open_remote_file(const std::string& url, IoMode,
                                                   const std::string& access) {
  if (auto listed = take_listed_object(url, access); listed) {
    return open_listed_file(url, access, listed->facts, std::move(listed->version));
  }
  const auto found = examine(url, access);
  return open_listed_file(url, access, found->facts, found->version);
}

std::shared_ptr<const StoredFile> open_listed_file(const std::string& url,
                                                   const std::string& access,
                                                   const FileFacts& facts, std::string version) {
  return std::make_shared<RemoteFile>(
      std::make_shared<const RemoteName>(RemoteName{url, access, std::move(version)}), facts);
}

RemoteFile::RemoteFile(std::shared_ptr<const RemoteName> name, const FileFacts& facts)
    : StoredFile(name->url, facts, kRemoteTraits), name_(std::move(name)) {}

RemoteFile::~RemoteFile() {
  forget_announced();
}

FileFacts RemoteFile::facts_now() const {
  return examine_remote_file(path(), name_->access);
}

bool RemoteFile::await_settled() const noexcept {
  if (facts().version_lasts) return true;
  return facts().mtime_ns > 0 && now_ns() - facts().mtime_ns > kRestNs;
}

RemoteFile::Pieces::iterator RemoteFile::piece_with(std::uint64_t offset) const {
  auto next = pieces_.upper_bound(offset);
  if (next == pieces_.begin()) return pieces_.end();
  --next;
  return offset < next->second.end() ? next : pieces_.end();
}

// The parts of the ranges that no piece has.
std::vector<FileRange> RemoteFile::not_asked_for(std::span<const FileRange> ranges) const {
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

// Makes pieces of ranges that no piece has, and bridges gaps between them that cost no more to read
// than to skip.
void RemoteFile::ask_for(std::vector<FileRange> ranges, bool is_urgent) const {
  RemoteExchange& exchange = RemoteExchange::instance();
  const std::vector<FileRange> wanted = merged(std::move(ranges), 0);
  for (const FileRange& each : not_asked_for(merged(wanted, traits().gap_bytes))) {
    // Between two pieces that are there already, there may be nothing but a gap.
    const std::uint64_t limit = each.offset + each.bytes;
    const auto first = std::partition_point(
        wanted.begin(), wanted.end(),
        [&](const FileRange& range) { return range.offset + range.bytes <= each.offset; });
    const auto after = std::partition_point(
        first, wanted.end(), [&](const FileRange& range) { return range.offset < limit; });
    if (first == after) continue;
    const FileRange& last = *(after - 1);
    const std::uint64_t end = std::min(limit, last.offset + last.bytes);
    for (std::uint64_t at = std::max(each.offset, first->offset); at < end;) {
      auto request = std::make_shared<RemoteRequest>();
      request->object = name_;
      request->offset = at;
      request->bytes = std::min<std::uint64_t>(traits().request_bytes, end - at);
      request->is_urgent = is_urgent;
      request->users = 1;
      exchange.add(request);
      at += request->bytes;
      const std::uint64_t offset = request->offset;
      pieces_.emplace(offset, Piece{std::move(request), 0});
    }
  }
}

// Calls action(piece, offset, bytes) for each part of a range that a piece has.
template <class Action>
void RemoteFile::for_parts(const FileRange& range, const Action& action) const {
  const std::uint64_t end = range.offset + range.bytes;
  for (std::uint64_t at = range.offset; at < end;) {
    const auto piece = piece_with(at);
    if (piece == pieces_.end()) return;
    const std::uint64_t stop = std::min(end, piece->second.end());
    action(piece, at, stop - at);
    at = stop;
  }
}

void RemoteFile::expect(std::span<const FileRange> ranges) const {
  for (const FileRange& each : ranges) {
    for_parts(each, [](Pieces::iterator piece, std::uint64_t, std::uint64_t count) {
      piece->second.unread_bytes += count;
    });
  }
}

// The pieces that have the range, which are dropped once everything that was expected is taken.
void RemoteFile::take_parts(const ReadRange& range, std::vector<Copy>& copies) const {
  RemoteExchange& exchange = RemoteExchange::instance();
  std::uint8_t* out = range.out;
  for_parts({range.offset, range.bytes},
            [&](Pieces::iterator piece, std::uint64_t at, std::uint64_t count) {
              const auto& request = piece->second.request;
              exchange.hurry(request);
              ++request->users;
              copies.push_back({request, at, out, static_cast<std::size_t>(count)});
              out += count;
              std::uint64_t& unread = piece->second.unread_bytes;
              unread -= std::min(unread, count);
              if (unread == 0) exchange.stop_counting(*request);
            });
}

void RemoteFile::drop(Pieces::iterator piece) const {
  dropped_.push_back(piece->second.request);
  pieces_.erase(piece);
  RemoteExchange::instance().let_go(dropped_.back());
}

void RemoteFile::read(std::span<const ReadRange> ranges) const {
  std::vector<FileRange> wanted;
  wanted.reserve(ranges.size());
  for (const ReadRange& each : ranges) {
    if (each.offset > bytes() || each.bytes > bytes() - each.offset) throw_shrunk(bytes());
    if (each.bytes > 0) wanted.push_back({each.offset, each.bytes});
  }
  std::vector<Copy> copies;
  std::vector<std::shared_ptr<RemoteRequest>> dropped;  // destroyed without the lock
  std::unique_lock lock(RemoteExchange::mutex());
  const std::vector<FileRange> missing = not_asked_for(wanted);
  ask_for(missing, true);
  expect(missing);
  for (const ReadRange& each : ranges) take_parts(each, copies);
  for (const Copy& each : copies) {
    const auto piece = piece_with(each.offset);
    if (piece != pieces_.end() && piece->second.unread_bytes == 0) drop(piece);
  }
  dropped.swap(dropped_);
  lock.unlock();
  dropped.clear();
  copy_all(copies);
}

void RemoteFile::copy_all(std::vector<Copy>& copies) const {
  RemoteExchange& exchange = RemoteExchange::instance();
  std::exception_ptr failure;
  for (Copy& each : copies) {
    std::unique_lock lock(RemoteExchange::mutex());
    try {
      if (failure == nullptr) exchange.wait_for(each.request, lock);
    } catch (...) {
      failure = std::current_exception();
      lock.lock();
    }
    const State state = each.request->state;
    if (failure == nullptr && state != State::done) {
      // Whoever asks again asks the network again.
      const auto piece = piece_with(each.request->offset);
      if (piece != pieces_.end() && piece->second.request == each.request) drop(piece);
      if (state == State::failed) failure = std::make_exception_ptr(*each.request->error);
    }
    exchange.let_go(each.request);
    lock.unlock();
    if (failure != nullptr) continue;
    if (state == State::done) {
      std::memcpy(each.out, each.request->bytes_read.data() + (each.offset - each.request->offset),
                  each.bytes);
    } else {
      again(each);
    }
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

// A request of the parent's, which this process was forked from, is never answered here.
void RemoteFile::again(const Copy& copy) const {
  read(copy.offset, copy.out, copy.bytes);
}

void RemoteFile::announce(std::span<const FileRange> ranges) const noexcept {
  try {
    std::vector<FileRange> wanted;
    wanted.reserve(ranges.size());
    for (const FileRange& each : ranges) {
      if (each.offset >= bytes() || each.bytes == 0) continue;
      wanted.push_back({each.offset, std::min(each.bytes, bytes() - each.offset)});
    }
    const std::lock_guard lock(RemoteExchange::mutex());
    ask_for(not_asked_for(wanted), false);
    expect(wanted);
  } catch (const std::exception&) {
    // The read itself will report the error.
  }
}

void RemoteFile::forget_announced() const noexcept {
  std::vector<std::shared_ptr<RemoteRequest>> dropped;
  const std::lock_guard lock(RemoteExchange::mutex());
  while (!pieces_.empty()) drop(pieces_.begin());
  dropped.swap(dropped_);
}

}  // namespace tfrfast
