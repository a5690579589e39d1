#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/base/thread.h"
#include "core/base/warnings.h"
#include "core/storage/cache_access.h"
#include "core/storage/cache_use.h"
#include "core/storage/cached_object.h"
#include "failing_calls.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

constexpr std::uint64_t kPage = kCachePageBytes;

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

class Cache {
 public:
  explicit Cache(std::uint64_t limit = 64 << 20) : limit_(limit) {}

  std::shared_ptr<CacheFolder> folder() const { return folder(limit_); }
  std::shared_ptr<CacheFolder> folder(std::uint64_t limit) const {
    return CacheFolder::open(at / "cache", limit);
  }
  std::shared_ptr<CachedObject> open(const std::string& url = "s3://bucket/object",
                                     const std::string& version = "1") const {
    return CachedObject::open(folder(), url, url + "\n" + version, bytes.size());
  }
  // Claims a range and keeps it, as if it had been fetched. Returns how many bytes were claimed.
  std::uint64_t fetch(CachedObject& object, std::uint64_t offset, std::uint64_t count) const {
    const FileRange wanted{offset, count};
    std::uint64_t claimed = 0;
    for (const FileRange& each : object.claim({&wanted, 1}, 0).claimed) {
      keep(object, each);
      claimed += each.bytes;
    }
    return claimed;
  }
  void keep(CachedObject& object, const FileRange& range) const {
    object.keep(range.offset, reinterpret_cast<const std::uint8_t*>(bytes.data()) + range.offset,
                range.bytes);
  }
  // What is there from `offset` on, of at most `count` bytes.
  std::string read(const CachedObject& object, std::uint64_t offset, std::size_t count) const {
    std::string out(count, '\0');
    out.resize(object.read(offset, reinterpret_cast<std::uint8_t*>(out.data()), count));
    return out;
  }
  std::string expected(std::uint64_t offset, std::size_t count) const {
    return bytes.substr(static_cast<std::size_t>(offset), count);
  }
  std::string file_ending(const std::string& ending) const {
    for (const auto& each : std::filesystem::recursive_directory_iterator(at / "cache")) {
      if (each.path().string().ends_with(ending)) return each.path().string();
    }
    return "";
  }

  TemporaryFolder at;
  std::string bytes = some_object((1 << 20) + 100);

 private:
  const std::uint64_t limit_;
};

// Runs `work` in a child process, which then ends at once.
template <class Work>
void in_child(const Work& work) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
}

}  // namespace

TEST_CASE("cached object: what was kept is read, by this process and later ones") {
  const Cache cache;
  auto object = cache.open();
  REQUIRE(object != nullptr);
  CHECK(cache.read(*object, 5, 10).empty());
  // A little is fetched with its neighbours, aligned.
  CHECK(cache.fetch(*object, 100'000, 300) == 64 << 10);
  CHECK(cache.read(*object, 100'000, 300) == cache.expected(100'000, 300));
  CHECK(cache.read(*object, 130'000, 5000) == cache.expected(130'000, 1072));
  // The end of the object is less than a page.
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
  // What was written is compared once, too, when it is read.
  CHECK(object->whole() == nullptr);
  CHECK(cache.read(*object, 0, cache.bytes.size()) == cache.bytes);
  REQUIRE(object->whole() != nullptr);
  CHECK(read_file(object->whole()->path()) == cache.bytes);
  object = nullptr;
  object = cache.open();
  // Another process may have written it, so it is looked at once.
  CHECK(object->whole() == nullptr);
  CHECK(cache.read(*object, 0, cache.bytes.size()) == cache.bytes);
  CHECK(object->whole() != nullptr);
}

TEST_CASE("cached object: a claim is one process's, until it keeps it or gives it back") {
  const Cache cache;
  const auto object = cache.open(), other = cache.open();
  const FileRange wanted{0, 2 * kPage};
  const auto first = object->claim({&wanted, 1}, 0);
  REQUIRE(first.claimed.size() == 1);
  CHECK(first.passing.empty());
  const auto second = other->claim({&wanted, 1}, 0);
  CHECK(second.claimed.empty());
  CHECK(second.passing.empty());
  CHECK(other->is_awaited(0, 10));
  object->release(0, first.claimed[0].bytes);
  CHECK_FALSE(other->is_awaited(0, 10));
  CHECK(cache.fetch(*other, 0, 2 * kPage) > 0);
  CHECK(cache.read(*object, 0, kPage) == cache.expected(0, kPage));
}

TEST_CASE("cached object: what a process that died has claimed is fetched by others") {
  const Cache cache;
  const auto object = cache.open();
  const FileRange wanted{0, 100};
  in_child([&] { object->claim({&wanted, 1}, 0); });
  CHECK_FALSE(object->is_awaited(0, 100));
  CHECK(cache.fetch(*object, 0, 100) > 0);
  CHECK(cache.read(*object, 0, 100) == cache.expected(0, 100));
}

TEST_CASE("cached object: a flipped byte and a file cut short are not there any more") {
  const Cache cache;
  auto object = cache.open();
  cache.fetch(*object, 0, cache.bytes.size());
  object = nullptr;
  const std::string mirror = cache.file_ending(".bytes");
  std::string damaged = cache.bytes;
  damaged[5 * kPage + 17] ^= 1;
  SUBCASE("before anyone looks") {
    write_file(mirror, damaged);
    object = cache.open();
    CHECK(cache.read(*object, 0, cache.bytes.size()) == cache.expected(0, 5 * kPage));
    CHECK(cache.read(*object, 6 * kPage, 100) == cache.expected(6 * kPage, 100));
  }
  SUBCASE("afterwards, when checksums of records do not fit") {
    object = cache.open();
    CHECK(cache.read(*object, 0, cache.bytes.size()) == cache.bytes);
    CHECK_FALSE(object->check_again(0, cache.bytes.size()));
    write_file(mirror, damaged);
    CHECK(object->check_again(5 * kPage, 100));
    CHECK(cache.read(*object, 5 * kPage, 100).empty());
  }
  SUBCASE("and by two threads that notice it at once") {
    object = cache.open();
    CHECK(cache.read(*object, 0, cache.bytes.size()) == cache.bytes);
    write_file(mirror, damaged);
    CHECK(object->check_again(5 * kPage, 100));
    CHECK(object->check_again(5 * kPage, 100));
  }
  SUBCASE("removed before it is opened") {
    std::filesystem::remove(mirror);
    object = cache.open();
    REQUIRE(object != nullptr);
    for (std::uint64_t page = 0; page <= 256; ++page) {
      CHECK(cache.read(*object, page * kPage, 10).empty());
    }
  }
  SUBCASE("cut short before it is opened") {
    std::filesystem::resize_file(mirror, 3 * kPage);
    object = cache.open();
    CHECK(cache.read(*object, 0, cache.bytes.size()).empty());
  }
  SUBCASE("cut short before somebody else opens it") {
    object = cache.open();
    CHECK(cache.read(*object, 0, cache.bytes.size()) == cache.bytes);
    std::filesystem::resize_file(mirror, 3 * kPage);
    const auto other = cache.open();
    // Who knows its pages finds the end of the file, and no zeros.
    CHECK(cache.read(*object, 10 * kPage, 100).empty());
    CHECK(cache.fetch(*object, 10 * kPage, 100) > 0);
    CHECK(cache.read(*object, 10 * kPage, 100).empty());
    CHECK(cache.fetch(*other, 10 * kPage, 100) > 0);
    CHECK(cache.read(*other, 10 * kPage, 100) == cache.expected(10 * kPage, 100));
    object = other;
  }
  SUBCASE("cut short while it is open") {
    object = cache.open();
    CHECK(cache.read(*object, 0, cache.bytes.size()) == cache.bytes);
    std::filesystem::resize_file(mirror, 3 * kPage);
    CHECK(cache.read(*object, 10 * kPage, 100).empty());
    CHECK(cache.read(*object, 0, 100) == cache.expected(0, 100));
    // It would grow by being written to, and be zeros in between.
    CHECK(cache.read(*object, 20 * kPage, 100).empty());
    CHECK(cache.fetch(*object, 20 * kPage, 100) > 0);
    CHECK(cache.read(*object, 20 * kPage, 100).empty());
    CHECK(cache.read(*object, 10 * kPage, 100).empty());
    object = nullptr;
    object = cache.open();
  }
  // A look finds out that it has to be fetched.
  CHECK(cache.read(*object, 5 * kPage, kPage).empty());
  CHECK(cache.fetch(*object, 5 * kPage, 100) > 0);
  CHECK(cache.read(*object, 5 * kPage, kPage) == cache.expected(5 * kPage, kPage));
}

TEST_CASE("cached object: a table that was cut short is a miss") {
  const Cache cache;
  const auto object = cache.open();
  cache.fetch(*object, 0, cache.bytes.size());
  std::filesystem::resize_file(cache.file_ending(".pages"), 100);
  const auto other = cache.open();
  CHECK(other == nullptr);
  const FileRange wanted{0, 100};
  CHECK_FALSE(object->is_awaited(0, 100));
  CHECK(object->claim({&wanted, 1}, 0).claimed.empty());
}

TEST_CASE("cached object: a folder that is removed while it is used holds no wrong bytes") {
  const Cache cache;
  const auto object = cache.open();
  cache.fetch(*object, 0, 100);
  std::filesystem::remove_all(cache.at / "cache");
  std::shared_ptr<CachedObject> other;
  SUBCASE("and is not there any more") {}
  SUBCASE("and somebody else makes it anew") {
    // With another limit it is opened by itself, as another process would.
    other = CachedObject::open(CacheFolder::open(cache.at / "cache", 32 << 20),
                               "s3://bucket/object", "s3://bucket/object\n1", cache.bytes.size());
    REQUIRE(other != nullptr);
  }
  CHECK(cache.read(*object, 0, 100) == cache.expected(0, 100));
  cache.fetch(*object, 500'000, 100);
  CHECK(cache.read(*object, 500'000, 100).empty());
  // From then on, everything passes by.
  const FileRange wanted{700'000, 100};
  const auto missing = object->claim({&wanted, 1}, 0);
  CHECK(missing.claimed.empty());
  REQUIRE(missing.passing.size() == 1);
  CHECK(missing.passing[0].bytes == 100);
  if (other == nullptr) return;
  CHECK(cache.fetch(*other, 500'000, 100) > 0);
  CHECK(cache.read(*other, 500'000, 100) == cache.expected(500'000, 100));
}

TEST_CASE("cached object: a forked child removes nothing that its parent uses") {
  Cache cache(500 << 10);
  cache.bytes = some_object(300 << 10);
  const auto first = cache.open("s3://first/object");
  int go[2];
  REQUIRE(::pipe(go) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    char byte = 0;
    const bool is_told = ::read(go[0], &byte, 1) == 1;
    {
      const auto mine = cache.open("s3://child/object");
      if (mine != nullptr) cache.fetch(*mine, 0, cache.bytes.size());
    }
    cache.folder()->clear();
    ::_exit(is_told ? 0 : 1);
  }
  // Opened after the fork.
  auto later = cache.open("s3://later/object");
  cache.fetch(*later, 0, cache.bytes.size());
  REQUIRE(::write(go[1], "x", 1) == 1);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  for (const int each : go) ::close(each);
  bool is_there = false;
  for (const CacheEntry& each : cache.folder()->entries()) {
    is_there = is_there || each.url == "s3://later/object";
  }
  CHECK(is_there);
  CHECK(cache.read(*later, 0, cache.bytes.size()) == cache.bytes);
}

TEST_CASE("cached object: what a forked child reads stays when its parent closes it") {
  const Cache cache;
  auto object = cache.open();
  cache.fetch(*object, 0, 64 << 10);
  int go[2];
  int begun[2];
  REQUIRE(::pipe(go) == 0);
  REQUIRE(::pipe(begun) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    char byte = 'x';
    // Where locks belong to processes, it has taken its own by now.
    const bool has_said = ::write(begun[1], &byte, 1) == 1;
    const bool is_told = ::read(go[0], &byte, 1) == 1;
    const bool is_there = cache.read(*object, 0, 100) == cache.expected(0, 100);
    const bool is_kept = cache.fetch(*object, 100'000, 100) > 0 &&
                         cache.read(*object, 100'000, 100) == cache.expected(100'000, 100);
    ::_exit(has_said && is_told && is_there && is_kept ? 0 : 1);
  }
  char byte = 0;
  REQUIRE(::read(begun[0], &byte, 1) == 1);
  object = nullptr;
  CHECK(cache.folder()->clear() == 0);
  CHECK(cache.folder()->entries().size() == 1);
  REQUIRE(::write(go[1], "x", 1) == 1);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  for (const int each : {go[0], go[1], begun[0], begun[1]}) ::close(each);
}

TEST_CASE("cached object: nothing is claimed that nobody wants") {
  Cache cache(250 << 10);
  cache.bytes = some_object(300 << 10);
  const auto folder = cache.folder();
  CacheUse use(folder, "s3://bucket/object");
  use.add_object("s3://bucket/object", 1 << 20);
  const auto object = cache.open();
  REQUIRE(object != nullptr);
  cache.fetch(*object, 6 * kPage, 20'000);
  const FileRange wanted{5 * kPage, 100};
  const auto missing = object->claim({&wanted, 1}, 0);
  REQUIRE(missing.claimed.size() == 1);
  CHECK(missing.claimed[0].offset == 0);
  CHECK(missing.claimed[0].bytes == 6 * kPage);
}

TEST_CASE("cached object: a table that cannot be used is made anew") {
  const Cache cache;
  const auto folder = cache.folder();
  auto object = cache.open();
  cache.fetch(*object, 0, cache.bytes.size());
  object = nullptr;
  std::filesystem::resize_file(cache.file_ending(".pages"), kPage + 16);
  object = cache.open();
  REQUIRE(object != nullptr);
  CHECK(cache.read(*object, 0, 100).empty());
  CHECK(cache.fetch(*object, 0, 100) > 0);
  CHECK(cache.read(*object, 0, 100) == cache.expected(0, 100));
}

TEST_CASE("cached object: the limit is never exceeded, and what does not fit passes through") {
  const Cache cache(400 << 10);
  const auto object = cache.open();
  REQUIRE(object != nullptr);
  std::uint64_t kept = 0;
  for (std::uint64_t at = 0; at < cache.bytes.size(); at += 50'000) {
    const FileRange wanted{at, std::min<std::uint64_t>(50'000, cache.bytes.size() - at)};
    const auto missing = object->claim({&wanted, 1}, 0);
    std::uint64_t found = 0;
    for (const FileRange& each : missing.claimed) {
      cache.keep(*object, each);
      kept += each.bytes;
    }
    for (const FileRange& each : missing.passing) {
      CHECK((each.offset >= wanted.offset && each.bytes <= wanted.bytes));
      found += each.bytes;
    }
    CHECK(found <= wanted.bytes);
    CHECK(disk_bytes(cache.at / "cache") <= 400 << 10);
  }
  CHECK(kept > 300 << 10);
  CHECK(kept <= 400 << 10);
  // What was kept first stays.
  CHECK(cache.read(*object, 0, 50'000) == cache.expected(0, 50'000));
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
    for (const CacheEntry& each : cache.folder()->entries()) {
      if (each.url == "s3://" + name + "/object") return true;
    }
    return false;
  };
  const auto folder = cache.folder();
  auto used = fill("used");
  fill("old");
  fill("new");
  CHECK(has("old"));
  auto more = fill("more");
  CHECK(cache.read(*more, 0, cache.bytes.size()) == cache.bytes);
  CHECK(has("used"));
  CHECK_FALSE(has("old"));
  CHECK(has("new"));
  CHECK(cache.read(*used, 0, 100) == cache.expected(0, 100));
  // With all in use, nothing gives way.
  const auto newer = cache.open("s3://new/object");
  CHECK(cache.fetch(*newer, 0, 100) == 0);
  const auto last = cache.open("s3://last/object");
  if (last != nullptr) {
    const FileRange wanted{0, cache.bytes.size()};
    CHECK_FALSE(last->claim({&wanted, 1}, 0).passing.empty());
  }
  CHECK(has("used"));
  CHECK(disk_bytes(cache.at / "cache") <= 700 << 10);
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
  CHECK(cache.folder()->entries().size() == 1);
}

TEST_CASE("cached object: what dead processes have left is put in order") {
  const Cache cache;
  std::uint64_t used = 0;
  {
    const auto folder = cache.folder();
    const auto object = cache.open();
    cache.fetch(*object, 0, 200'000);
    used = folder->used_bytes();
    // Room that was taken for nothing, and files that nobody knows.
    CHECK(folder->reserve(1 << 20, kPage) == 1 << 20);
    const std::string beside = std::filesystem::path(cache.file_ending(".bytes")).parent_path();
    write_file(beside + "/0123456789abcdef.bytes", std::string(100'000, 'x'));
    write_file(beside + "/0123456789abcdef.1.1.new", std::string(100'000, 'x'));
  }
  const auto folder = cache.folder();
  CHECK(folder->used_bytes() == used);
  CHECK(disk_bytes(cache.at / "cache") <= used);
  CHECK(cache.read(*cache.open(), 0, 200'000) == cache.expected(0, 200'000));
  CHECK(folder->clear() > 0);
  CHECK(folder->entries().empty());
  CHECK(folder->used_bytes() < 100 << 10);
}

TEST_CASE("cached object: what a damaged table says of itself changes nothing in the ledger") {
  const Cache cache;
  const auto folder = cache.folder();
  const std::uint64_t empty = folder->used_bytes();
  cache.fetch(*cache.open(), 0, 200'000);
  REQUIRE(folder->used_bytes() > empty);
  std::string table = read_file(cache.file_ending(".pages"));
  table[CacheTable::object_bytes * 8 + 6] ^= 1;
  write_file(cache.file_ending(".pages"), table);
  CHECK(folder->entries().empty());
  folder->clear();
  CHECK(folder->used_bytes() == empty);
  folder->give_back(1 << 30);
  CHECK(folder->used_bytes() == empty);
}

TEST_CASE("cached object: a table and its bytes go together") {
  for (const char* const lost : {".bytes", ".pages"}) {
    const Cache cache;
    const std::uint64_t empty = cache.folder()->used_bytes();
    cache.fetch(*cache.open(), 0, 200'000);
    std::filesystem::remove(cache.file_ending(lost));
    CHECK(cache.folder()->used_bytes() == empty);
    CHECK(disk_bytes(cache.at / "cache") <= empty + kPage);
    const auto object = cache.open();
    REQUIRE(object != nullptr);
    CHECK(cache.fetch(*object, 0, 200'000) > 0);
    CHECK(cache.read(*object, 0, 200'000) == cache.expected(0, 200'000));
  }
}

TEST_CASE("cached object: what a process may read stays, whether it is open or not") {
  const Cache cache;
  const auto folder = cache.folder();
  cache.fetch(*cache.open(), 0, 200'000);
  {
    const CacheUse use(folder, "s3://bucket/another object");
    CHECK(folder->clear() == 0);
    in_child([&] { cache.folder()->clear(); });
    REQUIRE(folder->entries().size() == 1);
    CHECK(folder->entries().front().is_in_use);
  }
  CHECK(folder->clear() > 0);
}

TEST_CASE("cached object: objects count once when it is asked whether all fits") {
  const Cache cache(1 << 20);
  const auto folder = cache.folder();
  CacheUse use(folder, "s3://bucket/object"), again(folder, "s3://bucket/object");
  for (int i = 0; i < 3; ++i) {
    use.add_object("s3://bucket/object", 600 << 10);
    again.add_object("s3://bucket/object", 600 << 10);
  }
  CHECK(folder->fits());
  {
    CacheUse other(folder, "s3://bucket/object");
    other.add_object("s3://bucket/other", 600 << 10);
    CHECK_FALSE(folder->fits());
  }
  CHECK(folder->fits());
}

TEST_CASE("cached object: two limits of one folder are one cache with the same users") {
  const Cache cache;
  // Another process, which has nothing of this one's.
  int go[2];
  REQUIRE(::pipe(go) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    char byte = 0;
    const bool is_told = ::read(go[0], &byte, 1) == 1;
    ::_exit(is_told && cache.folder(200 << 10)->clear() == 0 ? 0 : 1);
  }
  const auto object = cache.open();
  cache.fetch(*object, 0, 200'000);
  auto other = cache.folder(300 << 10);
  REQUIRE(other != cache.folder());
  CHECK(other->used_bytes() == cache.folder()->used_bytes());
  CHECK(other->clear() == 0);
  // Each takes no more than its own limit lets it.
  CHECK(other->reserve(1 << 20, kPage) < 100 << 10);
  CHECK(other->used_bytes() <= 300 << 10);
  CHECK(other->reserve(kPage, kPage) == 0);
  CHECK(cache.folder()->reserve(1 << 20, kPage) == 1 << 20);
  // Another name of the folder is the same folder.
  std::filesystem::create_symlink(cache.at / "cache", cache.at / "link");
  CHECK(CacheFolder::open(cache.at / "link", 300 << 10)->clear() == 0);
  // What closes takes nobody else's locks along.
  other = nullptr;
  REQUIRE(::write(go[1], "x", 1) == 1);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  for (const int each : go) ::close(each);
  CHECK(cache.folder()->entries().size() == 1);
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
        if (object == nullptr) continue;  // no room
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
  CHECK(folder->used_bytes() <= kLimit);
  CHECK(disk_bytes(cache.at / "cache") <= kLimit);
  folder->clear();
  CHECK(folder->used_bytes() == CacheLedger::empty_bytes(folder->block_bytes()));
}

TEST_CASE("cached object: on a disk that gives out large blocks, whole blocks count") {
  constexpr std::uint64_t kBlock = 64 << 10;
  constexpr std::uint64_t kLimit = 1 << 20;
  Cache cache(kLimit);
  cache.bytes = some_object(3 << 20);
  const auto first = cache.folder(64 << 20);
  // As if it had been found out when the folder was opened.
  std::string ledger = read_file(cache.at / "cache/v1/ledger");
  ledger.replace(3 * 8, 3, std::string("\0\0\1", 3));
  write_file(cache.at / "cache/v1/ledger", ledger);
  const auto folder = cache.folder();
  REQUIRE(folder->block_bytes() == kBlock);
  const auto object = cache.open();
  REQUIRE(object != nullptr);
  const std::uint64_t before = folder->used_bytes();
  CHECK(before >= 3 * kBlock);  // the table, its folder, and the object's end
  CacheUse use(folder, "s3://bucket/object");
  use.add_object("s3://bucket/object", cache.bytes.size());
  REQUIRE_FALSE(folder->fits());
  CHECK(cache.fetch(*object, 100'000, 20'000) == kBlock);
  CHECK(folder->used_bytes() == before + kBlock);
  // Across the end of a block.
  CHECK(cache.fetch(*object, 4 * kBlock - 10, 20'000) == 2 * kBlock);
  std::uint64_t claimed = 3 * kBlock;
  for (std::uint64_t at = 0; at < cache.bytes.size(); at += 100'000) {
    claimed += cache.fetch(*object, at, 20'000);
  }
  CHECK(claimed % kBlock == 0);
  CHECK(claimed >= 8 * kBlock);
  CHECK(folder->used_bytes() == before + claimed);
  CHECK(folder->used_bytes() <= kLimit);
}

TEST_CASE("cached object: what the disk takes beyond the pages counts, too") {
  const Cache cache;
  const auto folder = cache.folder();
  std::uint64_t used = 0;
  {
    const auto object = cache.open();
    cache.fetch(*object, 0, 100);
    used = folder->used_bytes();
    // As if half of what it takes were the filesystem's own.
    const std::string name = cache.file_ending(".pages");
    const auto table = SharedWords::open(name, CacheTable::kHeaderWords);
    REQUIRE(table->load(CacheTable::room_pages) == 16);
    table->store(CacheTable::room_pages, 8);
    cache.fetch(*object, 500'000, 100);
    CHECK(table->load(CacheTable::excess_bytes) == 8 * kPage);
    CHECK(folder->used_bytes() == used + 16 * kPage + 8 * kPage);
    CHECK(folder->entries().front().kept_bytes > 40 * kPage);
  }
  folder->clear();
  CHECK(folder->used_bytes() < used);
  CHECK(folder->used_bytes() == CacheLedger::empty_bytes(folder->block_bytes()));
}

TEST_CASE("cached object: a disk that is full is told of once, and reading goes on") {
  const Cache cache;
  const auto object = cache.open(), other = cache.open("s3://bucket/other");
  cache.fetch(*object, 0, 100);
  take_warnings();
  const FileRange wanted{500'000, 100};
  const auto missing = object->claim({&wanted, 1}, 0);
  REQUIRE(missing.claimed.size() == 1);
  const auto more = other->claim({&wanted, 1}, 0);
  {
    const FailingCall failing("pwrite", 0, ENOSPC);
    for (const auto& each : {object, other}) cache.keep(*each, missing.claimed.front());
    CHECK(failing.calls() == 1);  // once it is known, nothing is tried for a minute
  }
  const std::vector<std::string> warnings = take_warnings();
  REQUIRE(warnings.size() == 1);
  CHECK(warnings.front().find("Free space on that disk") != std::string::npos);
  // Nobody waits for it, nothing is there, and what was there still is.
  CHECK_FALSE(object->is_awaited(wanted.offset, wanted.bytes));
  CHECK_FALSE(other->is_awaited(wanted.offset, wanted.bytes));
  CHECK(cache.read(*object, wanted.offset, 100).empty());
  CHECK(cache.read(*object, 0, 100) == cache.expected(0, 100));
  const FileRange beyond{900'000, 100};
  CHECK(object->claim({&beyond, 1}, 0).claimed.empty());
}

TEST_CASE("cached object: what was read from it and what was fetched is added up") {
  const Cache cache;
  const auto folder = cache.folder();
  {
    const auto object = cache.open();
    cache.fetch(*object, 0, 200'000);
    object->count_fetched(200'000);
    for (int i = 0; i < 50; ++i) cache.read(*object, 0, 100'000);
    CHECK(folder->entries().front().served_bytes >= 4 << 20);  // while it is open
    object->count_served(7);
  }
  CHECK(folder->entries().front().served_bytes == 5'000'007);
  CHECK(folder->entries().front().fetched_bytes == 200'000);
  CHECK(folder->past_traffic().served_bytes == 0);
  folder->clear();
  CHECK(folder->past_traffic().served_bytes == 5'000'007);
  CHECK(folder->past_traffic().fetched_bytes == 200'000);
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

TEST_CASE("cached object: a folder that others may write to is refused") {
  const Cache cache;
  cache.folder();
  REQUIRE(::chmod((cache.at / "cache/v1").c_str(), 0777) == 0);
  const Error error = error_of([&] { CacheFolder::open_if_it_works(cache.at / "cache", 1 << 20); });
  CHECK(error.system_error() == EACCES);
  CHECK(error.message().find("others may write to it") != std::string::npos);
}

TEST_CASE("cached object: a cache that does not work leaves others alone") {
  const Cache broken, fine;
  const auto held = broken.folder();
  std::filesystem::resize_file(broken.at / "cache/v1/ledger", 0);
  const auto open = [](const Cache& which) {
    return CacheFolder::open_if_it_works(which.at / "cache", 12345);
  };
  CHECK(open(broken) == nullptr);
  CHECK(open(fine) != nullptr);
  CHECK(open(broken) == nullptr);
}

TEST_CASE("cached object: the description of a cache is part of how a storage is reached") {
  CHECK(split_access("").folder.empty());
  CHECK(split_access("{\"region\": 1}").client == "{\"region\": 1}");
  const CacheAccess found = split_access("cache:1000:5:/a:b{{\"x\": 2}");
  CHECK(found.folder == "/a:b{");
  CHECK(found.limit_bytes == 1000);
  CHECK(found.client == "{\"x\": 2}");
  CHECK(found.place.empty());
  const CacheAccess placed = split_access("cache:1000:2:/aat:9:at:http:/{}");
  CHECK(placed.folder == "/a");
  CHECK(placed.place == "at:http:/");
  CHECK(placed.client == "{}");
  CHECK(error_of([] { split_access("cache:1:2:/aat:9:x"); }).kind() == ErrorKind::invalid);
  for (const char* damaged : {"cache:", "cache:1:", "cache:1:9:/a", "cache:x:1:a", "cache:1:0:a"}) {
    CHECK(error_of([&] { split_access(damaged); }).kind() == ErrorKind::invalid);
  }
}
