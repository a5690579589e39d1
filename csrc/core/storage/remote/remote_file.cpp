#include "core/storage/remote/remote_file.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <mutex>
#include <utility>

#include "core/base/error.h"
#include "core/storage/local/local_file.h"
#include "core/storage/remote/listed_objects.h"

namespace tfrfast {
namespace {

using Phase = RemoteRequest::Phase;

// Without a lasting version, an object may change twice within a second of its server's clock,
// which may differ from our clock.
constexpr std::int64_t kRestNs = std::int64_t{60} * 1'000'000'000;

constexpr int kMaxCacheRounds = 3;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Waits for the answer of a request that no other thread knows.
void await_answer(const std::shared_ptr<RemoteRequest>& request) {
  RemoteExchange& exchange = RemoteExchange::instance();
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
  if (request->phase == Phase::failed) std::rethrow_exception(request->failure());
}

std::shared_ptr<RemoteRequest> examine(const std::string& url, const std::string& access) {
  const auto request = std::make_shared<RemoteRequest>();
  request->kind = RemoteRequest::Kind::examine;
  request->object = std::make_shared<const RemoteName>(RemoteName{url, access, ""});
  await_answer(request);
  return request;
}

}  // namespace

FileFacts examine_remote_file(const std::string& url, const StorageOptions& options) {
  return examine(url, options.access)->facts;
}

std::shared_ptr<const StoredFile> open_remote_file(const std::string& url, IoMode mode,
                                                   const StorageOptions& options) {
  if (auto listed = take_listed_object(url, options.access); listed) {
    return open_listed_file(url, mode, options, listed->facts, std::move(listed->version));
  }
  const auto found = examine(url, options.access);
  return open_listed_file(url, mode, options, found->facts, found->version);
}

std::shared_ptr<const StoredFile> open_listed_file(const std::string& url, IoMode mode,
                                                   const StorageOptions& options,
                                                   const FileFacts& facts, std::string version) {
  return std::make_shared<RemoteFile>(
      std::make_shared<const RemoteName>(RemoteName{url, options.access, std::move(version)}),
      facts, options, hold_cached(url, options), mode != IoMode::pread);
}

RemoteFile::RemoteFile(std::shared_ptr<const RemoteName> name, const FileFacts& facts,
                       StorageOptions options, std::shared_ptr<const CacheSet> set, bool may_map)
    : StoredFile(name->url, facts, kRemoteTraits),
      name_(std::move(name)),
      options_(std::move(options)),
      set_(std::move(set)),
      may_map_(may_map),
      pieces_(name_) {}

RemoteFile::~RemoteFile() {
  RemotePieces::Requests dropped;  // destroyed without the lock
  const std::lock_guard lock(RemoteExchange::mutex());
  pieces_.drop_all();
  dropped = pieces_.take_dropped();
}

FileFacts RemoteFile::facts_now() const {
  return examine_remote_file(path(), options_);
}

bool RemoteFile::await_settled() const noexcept {
  if (facts().version_lasts) return true;
  return facts().mtime_ns > 0 && now_ns() - facts().mtime_ns > kRestNs;
}

void RemoteFile::read(std::span<const ReadRange> ranges) const {
  for (const ReadRange& each : ranges) {
    if (each.offset > bytes() || each.bytes > bytes() - each.offset) throw_shrunk(bytes());
  }
  const std::shared_ptr<CachedObject>& kept = cache();
  std::vector<ReadRange> rest =
      kept == nullptr ? std::vector(ranges.begin(), ranges.end()) : read_cached(ranges, *kept);
  for (int round = 1; !rest.empty(); ++round) {
    std::vector<FileRange> wanted;
    wanted.reserve(rest.size());
    for (const ReadRange& each : rest) {
      if (each.bytes > 0) wanted.push_back({each.offset, each.bytes});
    }
    std::vector<PieceCopy> copies;
    std::vector<ReadRange> elsewhere;
    RemotePieces::Requests dropped;  // destroyed without the lock
    std::unique_lock<std::mutex> lock;
    wanted = merged(std::move(wanted), 0);
    // Whole blocks were requested, so a piece may hold nothing that is read here.
    const RemotePieces::Hold fetched = pieces_.hold(fetch(wanted, kept, true, lock).missing);
    // After some rounds, request past the cache, so that the loop ends whatever the cache's files
    // hold.
    if (round > kMaxCacheRounds) {
      pieces_.ask_for_all(pieces_.not_asked_for(wanted), true, kept);
    }
    for (const ReadRange& each : rest) pieces_.take(each, copies, elsewhere);
    pieces_.drop_read(copies);
    pieces_.let_go(fetched);
    dropped = pieces_.take_dropped();
    lock.unlock();
    dropped.clear();
    copy_all(copies);
    rest.clear();
    if (!elsewhere.empty()) rest = read_cached(elsewhere, *kept);
  }
  if (kept != nullptr) map_if_whole(*kept);
}

const std::shared_ptr<CachedObject>& RemoteFile::cache() const noexcept {
  return cache_.get([this] { return set_ == nullptr ? nullptr : open_cache(); });
}

std::shared_ptr<CachedObject> RemoteFile::open_cache() const noexcept {
  try {
    // Another object that looks the same may replace an object that is not settled.
    if (!await_settled()) return nullptr;
    std::string identity = path() + "\n" + name_->version;
    // With another endpoint, the same URL leads elsewhere.
    if (!options_.place.empty()) identity += "\n" + options_.place;
    if (!facts().version_lasts) identity += "\n" + name_->access;
    return CachedObject::open(set_, path(), identity, bytes());
  } catch (const std::exception&) {
    return nullptr;
  }
}

// Requests the bytes that were not requested before. Holds the exchange's lock afterwards.
RemoteFile::Fetched RemoteFile::fetch(std::span<const FileRange> wanted,
                                      const std::shared_ptr<CachedObject>& cache, bool is_urgent,
                                      std::unique_lock<std::mutex>& lock) const {
  lock = std::unique_lock(RemoteExchange::mutex());
  std::vector<FileRange> unasked = pieces_.not_asked_for(wanted);
  if (cache == nullptr) {
    pieces_.ask_for_all(unasked, is_urgent, nullptr);
    return {std::move(unasked), {}};
  }
  lock.unlock();
  // Without the lock, because the cache may search for space.
  std::vector<FileRange> missing = cache->missing(unasked, kRemoteTraits.gap_bytes);
  lock = std::unique_lock(RemoteExchange::mutex());
  for (const FileRange& each : pieces_.not_asked_for(missing)) {
    pieces_.ask_for(each, is_urgent, cache);
  }
  return {std::move(unasked), std::move(missing)};
}

std::vector<ReadRange> RemoteFile::read_cached(std::span<const ReadRange> ranges,
                                               CachedObject& cache) const {
  std::vector<ReadRange> rest, parts;
  if (!pieces_.is_empty()) {
    // Take announced bytes from their pieces, so that the pieces' memory becomes free.
    const std::lock_guard lock(RemoteExchange::mutex());
    for (const ReadRange& each : ranges) pieces_.divide(each, rest, parts);
    ranges = parts;
  }
  for (const ReadRange& each : ranges) {
    std::size_t done = 0;
    // Stop at a missing page. Later pages may be present.
    while (done < each.bytes) {
      const std::uint64_t at = each.offset + done;
      const std::size_t found = cache.read(at, each.out + done, each.bytes - done);
      done += found;
      if (done == each.bytes) break;
      const std::uint64_t missing = each.offset + done;
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(
          each.bytes - done, kCacheBlockBytes - missing % kCacheBlockBytes));
      if (!rest.empty() && rest.back().offset + rest.back().bytes == missing &&
          rest.back().out + rest.back().bytes == each.out + done) {
        rest.back().bytes += count;
      } else {
        rest.push_back({missing, each.out + done, count});
      }
      done += count;
    }
  }
  return rest;
}

void RemoteFile::map_if_whole(const CachedObject& cache) const noexcept {
  if (!may_map_ || mapping() != nullptr) return;
  // Announced pieces still have to be read.
  if (!pieces_.is_empty()) return;
  if (const std::uint8_t* const whole = cache.whole(); whole != nullptr) {
    become_local(whole, kLocalTraits);
  }
}

std::shared_ptr<RemoteRequest> RemoteFile::fetch_anew(const FileRange& range) const {
  const auto request = std::make_shared<RemoteRequest>();
  request->object = name_;
  request->offset = range.offset;
  request->bytes = range.bytes;
  await_answer(request);
  return request;
}

// The bytes may have been damaged on their way here, before the cache took their checksum. So
// request the bytes once more, whatever the cache's checksum says.
bool RemoteFile::mend(const FileRange& range) const noexcept {
  try {
    const std::shared_ptr<CachedObject>& kept = cache();
    if (kept == nullptr || range.offset >= bytes()) return false;
    const std::uint64_t wanted_end = range.offset + std::min(range.bytes, bytes() - range.offset);
    const std::uint64_t end = std::min(
        bytes(), (wanted_end + kCacheBlockBytes - 1) / kCacheBlockBytes * kCacheBlockBytes);
    RemotePieces::Requests dropped;  // destroyed without the lock
    {
      const std::lock_guard lock(RemoteExchange::mutex());
      pieces_.drop_wrong({range.offset, wanted_end - range.offset});
      dropped = pieces_.take_dropped();
    }
    dropped.clear();
    for (std::uint64_t at = range.offset / kCacheBlockBytes * kCacheBlockBytes; at < end;) {
      const std::uint64_t count = std::min<std::uint64_t>(end - at, kRemoteTraits.request_bytes);
      const auto answer = fetch_anew({at, count});
      // A request that the parent made before a fork is never answered here.
      if (answer->phase != Phase::done) return false;
      kept->replace(at, answer->bytes_read.data(), count);
      at += count;
    }
    return true;
  } catch (...) {
    return false;
  }
}

bool RemoteFile::is_cached(std::uint64_t offset) const noexcept {
  if (mapping() == nullptr) return false;
  return cache()->is_in_memory(offset);
}

void RemoteFile::copy_all(std::vector<PieceCopy>& copies) const {
  RemoteExchange& exchange = RemoteExchange::instance();
  std::exception_ptr failure;
  for (PieceCopy& each : copies) {
    std::unique_lock lock(RemoteExchange::mutex());
    try {
      if (failure == nullptr) exchange.wait_for(each.request, lock);
    } catch (...) {
      failure = std::current_exception();
      lock.lock();
    }
    const Phase phase = each.request->phase;
    if (failure == nullptr && phase != Phase::done) {
      pieces_.drop_failed(each.request);
      if (phase == Phase::failed) failure = each.request->failure();
    }
    exchange.let_go(each.request);
    lock.unlock();
    if (failure != nullptr) continue;
    if (phase == Phase::done) {
      std::memcpy(each.out, each.request->bytes_read.data() + (each.offset - each.request->offset),
                  each.bytes);
    } else {
      read(each.offset, each.out, each.bytes);  // the parent asked, before a fork
    }
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

// Cuts the ranges at the end of the object.
std::vector<FileRange> RemoteFile::within(std::span<const FileRange> ranges) const {
  std::vector<FileRange> wanted;
  wanted.reserve(ranges.size());
  for (const FileRange& each : ranges) {
    if (each.offset >= bytes() || each.bytes == 0) continue;
    wanted.push_back({each.offset, std::min(each.bytes, bytes() - each.offset)});
  }
  return wanted;
}

class RemoteFile::Announced final : public Announcement {
 public:
  Announced(RemotePieces& pieces, RemotePieces::Hold hold)
      : pieces_(pieces), hold_(std::move(hold)) {}
  ~Announced() override {
    RemotePieces::Requests dropped;  // destroyed without the lock
    const std::lock_guard lock(RemoteExchange::mutex());
    pieces_.let_go(hold_);
    dropped = pieces_.take_dropped();
  }
  void hurry() noexcept override {
    const std::lock_guard lock(RemoteExchange::mutex());
    pieces_.hurry(hold_);
  }

 private:
  RemotePieces& pieces_;
  const RemotePieces::Hold hold_;
};

std::unique_ptr<Announcement> RemoteFile::announce(std::span<const FileRange> ranges,
                                                   Reads reads) const noexcept {
  try {
    const auto& kept = cache();
    if (kept != nullptr) {
      map_if_whole(*kept);
      if (mapping() != nullptr) return kept->announce(ranges), nullptr;
    }
    std::vector<FileRange> expected = within(ranges);
    const std::vector<FileRange> wanted = merged(expected, 0);
    std::unique_lock<std::mutex> lock;
    Fetched fetched = fetch(wanted, kept, false, lock);
    if (reads == Reads::the_same) {
      std::erase_if(expected, [&fetched](const FileRange& each) {
        const auto unasked = std::partition_point(
            fetched.unasked.begin(), fetched.unasked.end(),
            [&each](const FileRange& range) { return range.offset + range.bytes <= each.offset; });
        return unasked == fetched.unasked.end() || unasked->offset >= each.offset + each.bytes;
      });
    }
    pieces_.expect(expected);
    fetched.missing.insert(fetched.missing.end(), wanted.begin(), wanted.end());
    RemotePieces::Hold hold = pieces_.hold(merged(std::move(fetched.missing), 0));
    lock.unlock();
    return hold.empty() ? nullptr : std::make_unique<Announced>(pieces_, std::move(hold));
  } catch (const std::exception&) {
    // The read itself will report the error.
    return nullptr;
  }
}

}  // namespace tfrfast
