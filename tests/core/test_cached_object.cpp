#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/thread.h"
#include "core/base/warnings.h"
#include "core/storage/cache/cache_writer.h"
#include "core/storage/cache/cached_object.h"
#include "core/storage/local/system_calls.h"
#include "failing_calls.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

constexpr std::uint64_t kPage = 4096;
// The place of an object's bytes in its file, after the page that names it and a page of lines.
constexpr std::uint64_t kBegin = 2 * kPage;
// A file system takes a block more to list the parts of a file that the disk has in many places.
constexpr std::uint64_t kPartsBytes = kPage;

std::string some_object(std::size_t count, unsigned seed = 0) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<char>((i * 2654435761U + seed * 97) >> 13);
  }
  return bytes;
}

std::uint64_t disk_bytes(const std::string& folder) {
  struct stat status;
  REQUIRE(::stat(folder.c_str(), &status) == 0);
  std::uint64_t total = static_cast<std::uint64_t>(status.st_blocks) * 512;
  for (const auto& each : std::filesystem::recursive_directory_iterator(folder)) {
    REQUIRE(::stat(each.path().c_str(), &status) == 0);
    total += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  return total;
}

// The disk space of the empty folders.
std::uint64_t empty_bytes(const std::string& folder) {
  struct stat status;
  std::uint64_t total = 0;
  for (const auto& each : std::filesystem::recursive_directory_iterator(folder)) {
    if (!each.is_directory() || !std::filesystem::is_empty(each.path())) continue;
    REQUIRE(::stat(each.path().c_str(), &status) == 0);
    total += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  return total;
}

class Cache {
 public:
  explicit Cache(std::uint64_t limit = 64 << 20) : limit_(limit) {}

  std::shared_ptr<CacheFolder> folder() const { return folder(limit_); }
  std::shared_ptr<CacheFolder> folder(std::uint64_t limit) const {
    return CacheFolder::open(at / "cache", limit);
  }
  std::shared_ptr<CachedObject> open(const std::string& url = "s3://bucket/object",
                                     const std::string& version = "1") const {
    return CachedObject::open(CacheSet::hold(folder(), url), url, url + "\n" + version,
                              bytes.size());
  }
  // Opens the cache like another process.
  std::shared_ptr<CachedObject> open_with(std::uint64_t limit) const {
    const std::string url = "s3://bucket/object";
    return CachedObject::open(CacheSet::hold(folder(limit), url), url, url + "\n1", bytes.size());
  }
  // Keeps what is missing of a range, as if it had been fetched. Returns the number of its bytes.
  std::uint64_t fetch(CachedObject& object, std::uint64_t offset, std::uint64_t count) const {
    const FileRange wanted{offset, count};
    std::uint64_t fetched = 0;
    for (const FileRange& each : object.missing({&wanted, 1}, 0)) {
      keep(object, each);
      fetched += each.bytes;
    }
    return fetched;
  }
  void keep(CachedObject& object, const FileRange& range) const {
    object.keep(range.offset, reinterpret_cast<const std::uint8_t*>(bytes.data()) + range.offset,
                range.bytes);
  }
  // Returns the present bytes from `offset` on, at most `count` bytes.
  std::string read(const CachedObject& object, std::uint64_t offset, std::size_t count) const {
    std::string out(count, '\0');
    out.resize(object.read(offset, reinterpret_cast<std::uint8_t*>(out.data()), count));
    return out;
  }
  std::string expected(std::uint64_t offset, std::size_t count) const {
    return bytes.substr(static_cast<std::size_t>(offset), count);
  }
  // The URLs of the objects with files.
  std::vector<std::string> urls() const {
    std::vector<std::string> found;
    for (const auto& each : std::filesystem::recursive_directory_iterator(at / "cache")) {
      if (!each.is_regular_file()) continue;
      const std::string header = read_file(each.path().string());
      const std::size_t begin = header.find('\0') + 1;
      found.push_back(header.substr(begin, header.find('\0', begin) - begin));
    }
    return found;
  }
  bool has(const std::string& url) const {
    const std::vector<std::string> found = urls();
    return std::find(found.begin(), found.end(), url) != found.end();
  }
  // The file of the only object.
  std::string file() const {
    for (const auto& each : std::filesystem::recursive_directory_iterator(at / "cache")) {
      if (each.is_regular_file()) return each.path().string();
    }
    return "";
  }
  void flip(std::uint64_t at_byte) const {
    std::string all = read_file(file());
    all[static_cast<std::size_t>(at_byte)] ^= 1;
    write_file(file(), all);
  }

  TemporaryFolder at;
  std::string bytes = some_object((1 << 20) + 100);

 private:
  const std::uint64_t limit_;
};

// A process that waits goes on when another process tells it to.
class Signal {
 public:
  Signal() { REQUIRE(::pipe(ends_) == 0); }
  ~Signal() {
    for (const int each : ends_) ::close(each);
  }
  bool wait() const {
    char byte = 0;
    return ::read(ends_[0], &byte, 1) == 1;
  }
  bool tell() const { return ::write(ends_[1], "x", 1) == 1; }

 private:
  int ends_[2];
};

}  // namespace

TEST_CASE("cached object: what was kept is read, by this process and later ones") {
  const Cache cache;
  auto object = cache.open();
  REQUIRE(object != nullptr);
  CHECK(cache.read(*object, 5, 10).empty());
  // A short range is fetched with its neighbours, in aligned blocks.
  CHECK(cache.fetch(*object, 100'000, 300) == 64 << 10);
  CHECK(cache.read(*object, 100'000, 300) == cache.expected(100'000, 300));
  CHECK(cache.read(*object, 130'000, 5000) == cache.expected(130'000, 1072));
  // The object's last page is not full.
  CHECK(cache.fetch(*object, 1 << 20, 100) == 100);
  CHECK(cache.read(*object, 1 << 20, 100) == cache.expected(1 << 20, 100));
  object = nullptr;
  object = cache.open();
  CHECK(cache.read(*object, 100'000, 300) == cache.expected(100'000, 300));
  CHECK(cache.fetch(*object, 100'000, 300) == 0);
}

TEST_CASE("cached object: once all of it is there and right, it is a file") {
  const Cache cache;
  auto object = cache.open();
  CHECK(object->whole() == nullptr);
  cache.fetch(*object, 0, cache.bytes.size());
  // Written bytes are compared once, too, when they are read.
  CHECK(object->whole() == nullptr);
  CHECK(cache.read(*object, 0, cache.bytes.size()) == cache.bytes);
  REQUIRE(object->whole() != nullptr);
  CHECK(std::string(reinterpret_cast<const char*>(object->whole()), cache.bytes.size()) ==
        cache.bytes);
  object = nullptr;
  object = cache.open();
  // Another process may have written the bytes, so they are compared once.
  CHECK(object->whole() == nullptr);
  CHECK(cache.read(*object, 0, cache.bytes.size()) == cache.bytes);
  CHECK(object->whole() != nullptr);
}

TEST_CASE("cached object: a folder that is removed while it is used holds no wrong bytes") {
  const Cache cache;
  const auto object = cache.open();
  cache.fetch(*object, 0, 100);
  std::filesystem::remove_all(cache.at / "cache");
  std::shared_ptr<CachedObject> other;
  SUBCASE("and is not there any more") {}
  SUBCASE("and somebody else makes it anew") {
    // With another limit, the folder has an object of its own, as in another process.
    other = cache.open_with(32 << 20);
    REQUIRE(other != nullptr);
  }
  CHECK(cache.read(*object, 0, 100) == cache.expected(0, 100));
  cache.fetch(*object, 500'000, 100);
  CHECK(cache.read(*object, 500'000, 100).empty());
  // From then on, all bytes bypass the cache.
  CHECK(cache.fetch(*object, 700'000, 100) == 100);
  if (other == nullptr) return;
  CHECK(cache.fetch(*other, 500'000, 100) > 0);
  CHECK(cache.read(*other, 500'000, 100) == cache.expected(500'000, 100));
}

TEST_CASE("cached object: a forked child removes nothing that its parent uses") {
  Cache cache(500 << 10);
  cache.bytes = some_object(300 << 10);
  const auto first = cache.open("s3://first/object");
  const Signal go;
  const pid_t child = start_child([&] {
    if (!go.wait()) return 1;
    {
      const auto mine = cache.open("s3://child/object");
      if (mine != nullptr) cache.fetch(*mine, 0, cache.bytes.size());
    }
    cache.folder()->clear();
    return 0;
  });
  // Opened after the fork.
  auto later = cache.open("s3://later/object");
  cache.fetch(*later, 0, cache.bytes.size());
  REQUIRE(go.tell());
  CHECK(status_of(child) == 0);
  CHECK(cache.has("s3://later/object"));
  CHECK(cache.read(*later, 0, cache.bytes.size()) == cache.bytes);
}

TEST_CASE("cached object: what a forked child reads stays when its parent closes it") {
  const Cache cache;
  auto object = cache.open();
  cache.fetch(*object, 0, 64 << 10);
  const Signal go, begun;
  const pid_t child = start_child([&] {
    if (!begun.tell() || !go.wait()) return 1;
    const bool is_there = cache.read(*object, 0, 100) == cache.expected(0, 100);
    const bool is_kept = cache.fetch(*object, 100'000, 100) > 0 &&
                         cache.read(*object, 100'000, 100) == cache.expected(100'000, 100);
    return is_there && is_kept ? 0 : 2;
  });
  REQUIRE(begun.wait());
  object = nullptr;
  CHECK(cache.folder()->clear() == 0);
  CHECK(cache.urls().size() == 1);
  REQUIRE(go.tell());
  CHECK(status_of(child) == 0);
}

TEST_CASE("cached object: the limit holds, and what does not fit is not kept") {
  const Cache cache(400 << 10);
  const auto object = cache.open();
  REQUIRE(object != nullptr);
  for (std::uint64_t at = 0; at < cache.bytes.size(); at += 50'000) {
    const auto count = std::min<std::size_t>(50'000, cache.bytes.size() - at);
    cache.fetch(*object, at, count);
    CHECK(disk_bytes(cache.at / "cache") <= (400 << 10) + kPartsBytes);
  }
  CHECK(disk_bytes(cache.at / "cache") > 300 << 10);
  // The bytes that were kept first stay. Of others, no more is fetched than is wanted.
  CHECK(cache.read(*object, 0, 50'000) == cache.expected(0, 50'000));
  CHECK(cache.fetch(*object, 900'000, 100) == 100);
}

TEST_CASE("cached object: those in use stay, and others give way, the oldest first") {
  Cache cache(700 << 10);
  cache.bytes = some_object(200 << 10);
  const auto fill = [&cache](const std::string& name) {
    auto object = cache.open("s3://" + name + "/object");
    cache.fetch(*object, 0, cache.bytes.size());
    return object;
  };
  const auto has = [&cache](const std::string& name) {
    return cache.has("s3://" + name + "/object");
  };
  const auto folder = cache.folder();
  auto used = fill("used");
  fill("old");
  // The clock of file times ticks slowly, and those times tell which set is older.
  write_file(cache.at / "tick", "");
  wait_for_another_ctime(cache.at / "tick");
  fill("new");
  CHECK(has("old"));
  auto more = fill("more");
  CHECK(cache.read(*more, 0, cache.bytes.size()) == cache.bytes);
  CHECK(has("used"));
  CHECK_FALSE(has("old"));
  CHECK(has("new"));
  CHECK(cache.read(*used, 0, 100) == cache.expected(0, 100));
  // While all sets are in use, no set gives way.
  const auto newer = cache.open("s3://new/object");
  CHECK(cache.fetch(*newer, 0, 100) == 0);
  const auto last = cache.open("s3://last/object");
  if (last != nullptr) {
    cache.fetch(*last, 0, cache.bytes.size());
    CHECK(cache.read(*last, 0, cache.bytes.size()).size() < cache.bytes.size());
  }
  CHECK(has("used"));
  CHECK(disk_bytes(cache.at / "cache") <= (700 << 10) + 4 * kPartsBytes);
}

TEST_CASE("cached object: another version is another object, and the old one goes") {
  const Cache cache;
  auto object = cache.open("s3://bucket/object", "1");
  cache.fetch(*object, 0, 100);
  auto newer = cache.open("s3://bucket/object", "2");
  CHECK(cache.read(*newer, 0, 100).empty());
  CHECK(cache.read(*object, 0, 100) == cache.expected(0, 100));
  object = newer = nullptr;
  newer = cache.open("s3://bucket/object", "2");
  CHECK(cache.urls().size() == 1);
}

TEST_CASE("cached object: what a process may read stays, whether it is open or not") {
  const Cache cache;
  const auto folder = cache.folder();
  cache.fetch(*cache.open(), 0, 200'000);
  {
    const auto held = CacheSet::hold(folder, "s3://bucket/another object");
    REQUIRE(held != nullptr);
    CHECK(folder->clear() == 0);
    CHECK(run_in_child([&] { return cache.folder()->clear(), 0; }) == 0);
    CHECK(cache.urls().size() == 1);
  }
  CHECK(folder->clear() > 0);
}

TEST_CASE("cached object: two limits of one folder are one cache with the same users") {
  const Cache cache;
  // Another process, which inherits nothing from this process.
  const Signal go;
  const pid_t child =
      start_child([&] { return go.wait() && cache.folder(200 << 10)->clear() == 0 ? 0 : 1; });
  const auto object = cache.open();
  cache.fetch(*object, 0, 200'000);
  auto other = cache.folder(300 << 10);
  REQUIRE(other != cache.folder());
  CHECK(other->clear() == 0);
  // Each takes no more than its own limit allows.
  CHECK(other->space_for(1 << 20) < 100 << 10);
  CHECK(cache.folder()->space_for(1 << 20) == 1 << 20);
  // Another name of the folder is the same folder.
  std::filesystem::create_symlink(cache.at / "cache", cache.at / "link");
  CHECK(CacheFolder::open(cache.at / "link", 300 << 10)->clear() == 0);
  // Closing one object does not release another object's locks.
  other = nullptr;
  REQUIRE(go.tell());
  CHECK(status_of(child) == 0);
  CHECK(cache.urls().size() == 1);
  CHECK(cache.read(*object, 0, 100) == cache.expected(0, 100));
}

TEST_CASE("cached object: many threads open, fill and give way at once") {
  constexpr std::uint64_t kLimit = 600 << 10;
  Cache cache(kLimit);
  cache.bytes = some_object(100 << 10);
  const auto folder = cache.folder();
  std::atomic<int> wrong{0}, kept{0};
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread) {
    threads.push_back(start_thread([&, thread] {
      for (unsigned i = 0; i < 40; ++i) {
        const unsigned number = (thread * 7 + i * 3) % 11;
        const auto object = cache.open("s3://set-" + std::to_string(number) + "/object");
        if (object == nullptr) continue;  // no space
        if (i % 8 == 7) folder->clear();
        cache.fetch(*object, 0, cache.bytes.size());
        const std::string found = cache.read(*object, 0, cache.bytes.size());
        if (found != cache.expected(0, found.size())) ++wrong;
        kept += found.size() == cache.bytes.size();
      }
    }));
  }
  for (std::thread& each : threads) each.join();
  CHECK(wrong == 0);
  CHECK(kept > 0);
  const std::uint64_t taken = disk_bytes(cache.at / "cache") - empty_bytes(cache.at / "cache");
  // Each thread may have written a block after the last count. The limit has room for six objects.
  CHECK(taken <= kLimit + 4 * kCacheBlockBytes + 6 * kPartsBytes);
  folder->clear();
  CHECK(cache.urls().empty());
  CHECK(std::filesystem::is_empty(cache.at / "cache/v2"));
}

TEST_CASE("cached object: a disk that is full is told of once, and reading goes on") {
  const Cache cache;
  const auto object = cache.open(), other = cache.open("s3://bucket/other");
  cache.fetch(*object, 0, 100);
  take_warnings();
  {
    const FailingCall failing("pwrite", 0, ENOSPC);
    for (const auto& each : {object, other}) CHECK(cache.fetch(*each, 500'000, 100) > 0);
    CHECK(failing.calls() == 1);  // after the failure, the cache tries nothing for a minute
  }
  const std::vector<std::string> warnings = take_warnings();
  REQUIRE(warnings.size() == 1);
  CHECK(warnings.front().find("Free space on that disk") != std::string::npos);
  // None of the bytes are present, and bytes that were present still are.
  CHECK(cache.read(*object, 500'000, 100).empty());
  CHECK(cache.read(*object, 0, 100) == cache.expected(0, 100));
  CHECK(cache.fetch(*object, 900'000, 100) == 100);
}

TEST_CASE("cached object: a process has only so many open, and mappings for all else") {
  take_warnings();
  Cache cache;
  cache.bytes = some_object(100);
  std::vector<std::shared_ptr<CachedObject>> objects;
  for (std::size_t i = 0; i < CachedObject::kMaxOpen; ++i) objects.push_back(cache.open());
  CHECK(std::find(objects.begin(), objects.end(), nullptr) == objects.end());
  CHECK(cache.open() == nullptr);
  CHECK(take_warnings().size() == 1);
  objects.pop_back();
  CHECK(cache.open() != nullptr);
}

TEST_CASE("cached object: a folder that others may write to, or replace, is refused") {
  const Cache cache;
  cache.folder();
  StorageOptions options;
  options.cache_folder = cache.at / "cache";
  options.cache_limit_bytes = 1 << 20;
  const auto hold = [&options] { return hold_cached("s3://bucket/object", options); };
  const auto refused = [&hold] { return error_of([&hold] { hold(); }); };
  REQUIRE(::chmod((cache.at / "cache/v2").c_str(), 0777) == 0);
  CHECK(refused().system_error() == EACCES);
  CHECK(refused().message().find("others may write to it") != std::string::npos);
  REQUIRE(::chmod((cache.at / "cache/v2").c_str(), 0700) == 0);
  for (const char* const above : {"cache", ""}) {
    REQUIRE(::chmod((cache.at / above).c_str(), 0777) == 0);
    CHECK(refused().system_error() == EACCES);
    CHECK(refused().message().find("a folder that it lies in") != std::string::npos);
    // In such a folder, no user renames other users' entries.
    REQUIRE(::chmod((cache.at / above).c_str(), 01777) == 0);
    CHECK(hold() != nullptr);
    REQUIRE(::chmod((cache.at / above).c_str(), 0700) == 0);
  }
}

TEST_CASE("cached object: a folder that was put in the place of an open one is not read") {
  const Cache cache;
  auto object = cache.open();
  cache.fetch(*object, 0, cache.bytes.size());
  Cache forged;
  forged.bytes = some_object(cache.bytes.size(), 1);
  forged.fetch(*forged.open(), 0, forged.bytes.size());
  std::filesystem::rename(cache.at / "cache", cache.at / "before");
  std::filesystem::rename(forged.at / "cache", cache.at / "cache");
  CHECK(cache.read(*object, 0, cache.bytes.size()) == cache.bytes);
  object = nullptr;
  // The folder was opened once, and all files are opened relative to it.
  object = CachedObject::open(CacheSet::hold(cache.folder(), "s3://bucket/object"),
                              "s3://bucket/object", "s3://bucket/object\n1", cache.bytes.size());
  REQUIRE(object != nullptr);
}

TEST_CASE("cached object: counts of older versions in its file make no difference") {
  Cache cache;
  cache.fetch(*cache.open(), 0, cache.bytes.size());
  cache.flip(kPage - 1);
  const auto object = cache.open();
  CHECK(cache.read(*object, 0, cache.bytes.size()) == cache.bytes);
}

TEST_CASE("cached object: whatever is wrong in its file, what is read is right, and comes again") {
  const Cache cache;
  std::shared_ptr<CachedObject> object;
  CHECK(run_in_child([&] { return cache.fetch(*cache.open(), 0, cache.bytes.size()), 0; }) == 0);
  const auto open_and_check = [&](std::uint64_t wrong_page) {
    object = cache.open();
    REQUIRE(object != nullptr);
    CHECK(cache.read(*object, wrong_page * kPage, 100).empty());
    cache.fetch(*object, 0, cache.bytes.size());
    CHECK(cache.read(*object, 0, cache.bytes.size()) == cache.bytes);
  };
  SUBCASE("a flipped bit of the object") {
    cache.flip(kBegin + 5 * kPage + 17);
    open_and_check(5);
  }
  SUBCASE("two pages that were exchanged") {
    std::string all = read_file(cache.file());
    const auto page = all.begin() + kBegin + kPage;
    std::swap_ranges(page, page + kPage, page + kPage);
    write_file(cache.file(), all);
    open_and_check(1);
  }
  SUBCASE("a flipped bit of a line") {
    cache.flip(kPage + 16 * 8 + 1);
    open_and_check(256);
  }
  SUBCASE("pages that a line claims and that are not there") {
    std::string all = read_file(cache.file());
    std::fill_n(all.begin() + kBegin + 2 * kCacheBlockBytes, kCacheBlockBytes, '\0');
    write_file(cache.file(), all);
    open_and_check(40);
  }
  SUBCASE("a flipped bit of the header") {
    cache.flip(20);
    open_and_check(0);
  }
  SUBCASE("no lines") {
    std::string all = read_file(cache.file());
    std::fill_n(all.begin() + kPage, kPage, '\0');
    write_file(cache.file(), all);
    open_and_check(0);
  }
  SUBCASE("no end") {
    std::filesystem::resize_file(cache.file(), 3 * kPage);
    open_and_check(0);
  }
  SUBCASE("no beginning") {
    std::filesystem::resize_file(cache.file(), 0);
    open_and_check(0);
  }
}

TEST_CASE("cached object: a file that is cut short while it is read has no zeros") {
  const Cache cache;
  const auto object = cache.open();
  cache.fetch(*object, 0, cache.bytes.size());
  CHECK(cache.read(*object, 0, cache.bytes.size()) == cache.bytes);
  std::filesystem::resize_file(cache.file(), 4 * kPage);
  CHECK(cache.read(*object, 10 * kPage, 100).empty());
  CHECK(cache.read(*object, 20 * kPage, 100).empty());
  // Writing would make the file grow, with zeros in the gap.
  cache.fetch(*object, 20 * kPage, 100);
  CHECK(cache.read(*object, 20 * kPage, 100).empty());
  const auto other = cache.open();
  CHECK(cache.fetch(*other, 10 * kPage, 100) > 0);
  CHECK(cache.read(*other, 10 * kPage, 100) == cache.expected(10 * kPage, 100));
  CHECK(cache.read(*object, 10 * kPage, 100).empty());
}

TEST_CASE(
    "cached object: random damage, also of lines, gives neither wrong bytes nor an endless look") {
  Cache cache;
  cache.bytes = some_object(200'000);
  std::uint64_t random = 7;
  const auto next = [&random](std::uint64_t below) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    return (random >> 33) % below;
  };
  for (int round = 0; round < 60; ++round) {
    auto object = cache.open();
    REQUIRE(object != nullptr);
    cache.fetch(*object, next(100'000), 1 + next(50'000));
    cache.fetch(*object, next(100'000), 1 + next(50'000));
    if (round % 2 == 0) object = nullptr;  // otherwise the file is damaged while it is open
    std::string all = read_file(cache.file());
    const std::uint64_t begin = round % 3 == 0 ? 0 : kPage;
    for (std::uint64_t i = 0; i < 1 + next(20); ++i) {
      all[static_cast<std::size_t>(begin + next(all.size() - begin))] =
          static_cast<char>(next(256));
    }
    // In place, like a failing disk.
    std::fstream file(cache.file(), std::ios::in | std::ios::out | std::ios::binary);
    file.write(all.data(), static_cast<std::streamsize>(all.size()));
    file.close();
    if (object == nullptr) object = cache.open();
    REQUIRE(object != nullptr);
    if (round % 2 == 0) {
      for (std::uint64_t page = 0; page < 49; ++page) {
        const std::string found = cache.read(*object, page * kPage, 3000);
        CHECK(found == cache.expected(page * kPage, found.size()));
      }
    }
    cache.fetch(*object, next(150'000), 20'000);
  }
}

TEST_CASE("cached object: bytes that were damaged on their way are replaced, for everybody") {
  Cache cache;
  cache.bytes = some_object(300'000);
  const std::string right = cache.bytes;
  const auto object = cache.open(), other = cache.open();
  cache.bytes[100'000] = static_cast<char>(cache.bytes[100'000] ^ 4);
  cache.fetch(*object, 0, right.size());
  CHECK(cache.read(*object, 0, right.size()) == cache.bytes);  // all bytes match their checksums
  CHECK(cache.read(*other, 0, 1000) == cache.expected(0, 1000));
  REQUIRE(object->whole() != nullptr);
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(right.data());
  object->replace(kCacheBlockBytes, bytes + kCacheBlockBytes, kCacheBlockBytes);
  cache.bytes = right;
  CHECK(cache.read(*object, 0, right.size()) == right);
  CHECK(object->whole() != nullptr);
  CHECK(cache.read(*other, 0, right.size()) == right);
  CHECK(cache.read(*cache.open(), 0, right.size()) == right);
}

TEST_CASE("cached object: damaged bytes that cannot be replaced are not read here any more") {
  Cache cache;
  cache.bytes = some_object(300'000);
  const auto object = cache.open();
  cache.fetch(*object, 0, cache.bytes.size());
  {
    const FailingCall failing("pwrite", 0, ENOSPC);
    object->replace(0, reinterpret_cast<const std::uint8_t*>(cache.bytes.data()), kCacheBlockBytes);
  }
  CHECK(cache.read(*object, 0, 100).empty());
  CHECK(cache.read(*object, kCacheBlockBytes, 100) == cache.expected(kCacheBlockBytes, 100));
  take_warnings();
}

TEST_CASE("cached object: a folder that may only be read is read") {
  const Cache cache;
  cache.fetch(*cache.open(), 0, 200'000);
  const auto forbid = [&](const std::string& path) {
    using std::filesystem::perms;
    const bool is_folder = std::filesystem::is_directory(path);
    std::filesystem::permissions(path, is_folder ? perms(0555) : perms(0444));
  };
  for (const auto& each : std::filesystem::recursive_directory_iterator(cache.at / "cache")) {
    forbid(each.path());
  }
  forbid(cache.at / "cache");
  forbid(cache.at / "");
  CHECK(run_in_child([&] {
          // Root may write everywhere, so become another user.
          if (::geteuid() == 0 && ::seteuid(65534) != 0) return 1;
          take_warnings();
          const auto object = cache.open_with(32 << 20);
          if (object == nullptr || cache.read(*object, 0, 200'000) != cache.expected(0, 200'000)) {
            return 2;
          }
          if (!take_warnings().empty()) return 3;
          for (int i = 0; i < 2; ++i) {
            if (cache.fetch(*object, 500'000, 100) != 100) return 4;
          }
          if (take_warnings().size() != 1) return 5;
          return 0;
        }) == 0);
  for (const auto& each : std::filesystem::recursive_directory_iterator(cache.at / "cache")) {
    std::filesystem::permissions(each.path(), std::filesystem::perms::owner_all);
  }
  std::filesystem::permissions(cache.at / "cache", std::filesystem::perms::owner_all);
  std::filesystem::permissions(cache.at / "", std::filesystem::perms::owner_all);
}

TEST_CASE(
    "cached object: sets take a quarter of a process's descriptors, and others are not kept") {
  const Cache cache;
  CHECK(run_in_child([&] {
          const rlimit few{256, 256};
          if (::setrlimit(RLIMIT_NOFILE, &few) != 0) return 1;
          take_warnings();
          const auto folder = cache.folder();
          std::vector<std::shared_ptr<const CacheSet>> held;
          for (int i = 0; i < 80; ++i) {
            held.push_back(CacheSet::hold(folder, "s3://bucket/" + std::to_string(i) + "/object"));
            if ((held.back() != nullptr) != (i < 64)) return 2;
          }
          if (take_warnings().size() != 1) return 3;
          return 0;
        }) == 0);
}

TEST_CASE("cached object: nobody waits long for a process that was stopped") {
  const Cache cache;
  cache.fetch(*cache.open(), 0, 100);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const std::string set = std::filesystem::path(cache.file()).parent_path().string();
    const FileDescriptor opened(set);
    if (lock_within(opened.get(), OpenLock::alone, 0) == 0) ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  REQUIRE(WIFSTOPPED(status));
  const auto begun = std::chrono::steady_clock::now();
  CHECK(cache.open() == nullptr);
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(kPatienceSeconds / 10));
  REQUIRE(::kill(child, SIGKILL) == 0);
  REQUIRE(::waitpid(child, &status, 0) == child);
  // Another process, which has not waited, is not kept out.
  const auto object = cache.open_with(32 << 20);
  REQUIRE(object != nullptr);
  CHECK(cache.read(*object, 0, 100) == cache.expected(0, 100));
}

TEST_CASE("cached object: absent blocks are fetched whole, and nothing that nobody wants") {
  const Cache cache;
  const auto object = cache.open();
  const auto missing = [&object](const std::vector<FileRange>& wanted) {
    return object->missing(wanted, 64 << 10);
  };
  auto ranges = missing({{70'000, 100}, {90'000, 100}, {140'000, 100}, {300'000, 100}});
  REQUIRE(ranges.size() == 2);
  CHECK((ranges[0].offset == 1 << 16 && ranges[0].bytes == 2 << 16));
  CHECK((ranges[1].offset == 4 << 16 && ranges[1].bytes == 1 << 16));
  cache.keep(*object, ranges[0]);
  ranges = missing({{0, 200'000}});
  REQUIRE(ranges.size() == 2);
  CHECK((ranges[0].offset == 0 && ranges[0].bytes == 1 << 16));
  CHECK((ranges[1].offset == 3 << 16 && ranges[1].bytes == 1 << 16));
}

TEST_CASE("cached object: processes may fetch a block at the same time") {
  const Cache cache;
  const auto object = cache.open();
  const FileRange wanted{100'000, 100};
  const auto ranges = object->missing({&wanted, 1}, 0);
  CHECK(run_in_child([&] {
          return cache.fetch(*cache.open_with(32 << 20), 100'000, 100) > 0 ? 0 : 1;
        }) == 0);
  CHECK(cache.read(*object, 100'000, 100) == cache.expected(100'000, 100));
  REQUIRE(ranges.size() == 1);
  cache.keep(*object, ranges[0]);
  CHECK(cache.read(*object, 100'000, 100) == cache.expected(100'000, 100));
}

TEST_CASE("cached object: an object may have blocks of its own") {
  const Cache cache;
  const std::uint64_t size = cache.bytes.size();
  const auto open = [&] {
    const std::string url = "inflated /shard";
    return CachedObject::open(CacheSet::hold(cache.folder(), url), url, url, size,
                              {1, 100'000, 700'001, size});
  };
  auto object = open();
  REQUIRE(object != nullptr);
  cache.keep(*object, {100'000, 600'001});
  CHECK(object->has(100'000, 600'001));
  CHECK_FALSE(object->has(99'999, 2));
  CHECK_FALSE(object->has(700'000, 2));
  CHECK(cache.read(*object, 700'000, 100) == cache.expected(700'000, 1));
  for (const FileRange& each : {FileRange{0, 1}, {1, 99'999}, {700'001, size - 700'001}}) {
    cache.keep(*object, each);
  }
  object = open();
  CHECK(cache.read(*object, 0, size) == cache.bytes);
  CHECK(object->whole() != nullptr);
}

TEST_CASE("cached object: what waits to be written is there at once") {
  Cache cache(128 << 20);
  cache.bytes = some_object(64 << 20);
  const auto object = cache.open();
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(cache.bytes.data());
  for (std::uint64_t at = 0; at < cache.bytes.size(); at += 1 << 20) {
    CacheWriter::instance().add(object, at, {object, bytes + at}, 1 << 20);
  }
  const FileRange last{cache.bytes.size() - 300'000, 300'000};
  CHECK(object->missing({&last, 1}, 0).empty());
  CHECK(cache.read(*object, last.offset, last.bytes) == cache.expected(last.offset, last.bytes));
  CacheWriter::instance().finish(1000 * kPatienceSeconds);
  CHECK(object->has(0, cache.bytes.size()));
  CHECK(cache.read(*cache.open(), last.offset, last.bytes) ==
        cache.expected(last.offset, last.bytes));
}
