#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/storage/beyond_posix.h"
#include "core/storage/cache_users.h"
#include "core/storage/cached_object.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

constexpr int kMany = 300;  // more than a process has locks

std::uint64_t key_of(int number) {
  return static_cast<std::uint64_t>(number) * 0x9e37'79b9'7f4a'7c15U + 5;
}

std::shared_ptr<CachedObject> open_one(const std::shared_ptr<CacheFolder>& folder, int number,
                                       const std::string& version) {
  const std::string url = "s3://bucket/set/" + std::to_string(number);
  return CachedObject::open(folder, url, url + "\n" + version, 100);
}

std::vector<std::shared_ptr<CachedObject>> open_many(const std::shared_ptr<CacheFolder>& folder,
                                                     const std::string& version) {
  std::vector<std::shared_ptr<CachedObject>> all;
  for (int i = 0; i < kMany; ++i) all.push_back(open_one(folder, i, version));
  return all;
}

// Another process, which begins with what this one has. It works at once, and then waits for its
// end.
class OtherProcess {
 public:
  template <class Work>
  explicit OtherProcess(const Work& work) {
    int done[2], go[2];
    REQUIRE(::pipe(done) == 0);
    REQUIRE(::pipe(go) == 0);
    child_ = ::fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) {
      ::close(go[1]);
      const auto held = work();
      char byte = 'x';
      const bool is_told = ::write(done[1], &byte, 1) == 1 && ::read(go[0], &byte, 1) >= 0;
      ::_exit(is_told && held ? 0 : 1);
    }
    ::close(go[0]);
    ::close(done[1]);
    go_ = go[1];
    char byte = 0;
    CHECK(::read(done[0], &byte, 1) == 1);
    ::close(done[0]);
  }
  ~OtherProcess() { end(); }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  // Its exit status; 0 if what its work returned is true.
  int end() {
    if (child_ < 0) return 0;
    ::close(go_);
    int status = 0;
    CHECK(::waitpid(child_, &status, 0) == child_);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void kill() {
    ::kill(child_, SIGKILL);
    end();
  }

 private:
  pid_t child_ = -1;
  int go_ = -1;
};

class Folder {
 public:
  std::shared_ptr<CacheFolder> open(std::uint64_t limit = 64 << 20) const {
    return CacheFolder::open(at_ / "cache", limit);
  }
  std::string path() const { return at_ / "cache/v1"; }
  std::uint64_t disk_bytes() const {
    struct stat status;
    REQUIRE(::stat(path().c_str(), &status) == 0);
    std::uint64_t total = static_cast<std::uint64_t>(status.st_blocks) * 512;
    for (const auto& each : std::filesystem::recursive_directory_iterator(path())) {
      REQUIRE(::stat(each.path().c_str(), &status) == 0);
      total += static_cast<std::uint64_t>(status.st_blocks) * 512;
    }
    return total;
  }

 private:
  TemporaryFolder at_;
};

// How many keys, of those in [begin, end), this process could have to itself.
int count_free(CacheUsers& users, int begin, int end) {
  int count = 0;
  for (int i = begin; i < end; ++i) count += CacheUsers::Alone(users, key_of(i)).is_held();
  return count;
}

#if defined(F_OFD_GETLK)
int count_locks_between(int descriptor, off_t begin, off_t end) {
  struct flock range = {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = begin;
  range.l_len = end - begin;
  REQUIRE(::fcntl(descriptor, F_OFD_GETLK, &range) == 0);
  if (range.l_type == F_UNLCK) return 0;
  int count = 1;
  if (range.l_start > begin) count += count_locks_between(descriptor, begin, range.l_start);
  const off_t after = range.l_start + range.l_len;
  if (after < end) count += count_locks_between(descriptor, after, end);
  return count;
}

// As another process sees them.
int count_locks(const Folder& folder) {
  const int file = ::open((folder.path() + "/users").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(file >= 0);
  const int count = count_locks_between(file, 0, std::numeric_limits<off_t>::max());
  ::close(file);
  return count;
}
#endif

}  // namespace

#if defined(F_OFD_GETLK)
TEST_CASE("cache users: whoever uses many objects has few locks, after a fork, too") {
  if (!kByteLocksBelongToFiles) return;  // closing the file to look at it would end them
  const Folder at;
  const auto folder = at.open();
  auto objects = open_many(folder, "1");
  CHECK(count_locks(at) < kMany / 2);
  OtherProcess other([&] { return true; });
  CHECK(count_locks(at) < kMany / 2);
  other.end();
  // Those that are left, and the folder itself.
  objects.clear();
  CHECK(count_locks(at) <= 2);
}
#endif

TEST_CASE("cache users: of many objects those in use stay, and their other versions go") {
  const Folder at;
  { open_many(at.open(), "1"); }
  OtherProcess other([&] {
    static const auto kFolder = at.open();
    static auto kept = open_many(kFolder, "2");
    for (int i = 0; i < kMany; i += 2) kept[static_cast<std::size_t>(i)] = nullptr;
    return kFolder->entries().size() == kMany;
  });
  const auto folder = at.open();
  CHECK(folder->clear() == 0);
  const auto newer = open_many(folder, "3");
  CHECK(folder->entries().size() == kMany + kMany / 2);
  CHECK(other.end() == 0);
  const auto newest = open_many(folder, "4");
  CHECK(folder->entries().size() == 2 * kMany);
}

TEST_CASE("cache users: what a killed process had listed is free, and its list is another's") {
  const Folder at;
  const auto use_many = [&] {
    static const auto kFolder = at.open();
    for (int i = 0; i < 5 * kMany; ++i) kFolder->users().begin_use(key_of(i));
    return true;
  };
  OtherProcess first(use_many);
  const auto folder = at.open();
  CHECK(count_free(folder->users(), 0, 5 * kMany) == 0);
  CHECK(count_free(folder->users(), 5 * kMany, 6 * kMany) == kMany);
  const std::uint64_t used = folder->used_bytes();
  CHECK(used > CacheLedger::empty_bytes(folder->block_bytes()));
  CHECK(at.disk_bytes() <= used);
  first.kill();
  CHECK(count_free(folder->users(), 0, 5 * kMany) == 5 * kMany);
  for (int i = 0; i < kMany; ++i) folder->users().begin_use(key_of(i));
  CHECK(folder->used_bytes() < used);
  CHECK(at.disk_bytes() <= folder->used_bytes());
}

TEST_CASE("cache users: keys come and go, and others see those in use") {
  const Folder at;
  OtherProcess other([&] {
    static const auto kFolder = at.open();
    CacheUsers& users = kFolder->users();
    for (int i = 0; i < 10'000; ++i) {
      users.begin_use(key_of(i));
      if (i >= 1000) users.end_use(key_of(i - 1000));
    }
    return true;
  });
  const auto folder = at.open();
  CHECK(count_free(folder->users(), 0, 9'000) == 9'000);
  CHECK(count_free(folder->users(), 9'000, 10'000) == 0);
}

TEST_CASE("cache users: a fork leaves parent and child what each uses") {
  const Folder at;
  const auto folder = at.open();
  CacheUsers& users = folder->users();
  for (int i = 0; i < kMany; ++i) users.begin_use(key_of(i));
  OtherProcess child([&] {
    for (int i = 0; i < 200; ++i) users.end_use(key_of(i));
    return true;
  });
  for (int i = 100; i < kMany; ++i) users.end_use(key_of(i));
  // The parent has the first hundred, the child the last.
  CHECK(count_free(users, 100, 200) == 100);
  CHECK(count_free(users, 200, kMany) == 0);
  OtherProcess third([&] {
    for (int i = 0; i < 100; ++i) users.end_use(key_of(i));
    return count_free(users, 0, 100) == 0 && count_free(users, 200, kMany) == 0 &&
           count_free(users, 100, 200) == 100;
  });
  CHECK(third.end() == 0);
  CHECK(child.end() == 0);
  CHECK(count_free(users, 200, kMany) == 100);
}

TEST_CASE("cache users: what is listed stays so if a fork comes while another looks at it") {
  const Folder at;
  // The last ones are the first in order of their keys.
  const auto key = [](int number) { return static_cast<std::uint64_t>(kMany - number) << 20; };
  const std::uint64_t listed = key(kMany - 1);
  int go[2], done[2];
  REQUIRE(::pipe(go) == 0);
  REQUIRE(::pipe(done) == 0);
  char byte = 'x';
  // Not by run_in_child(): a child of a process that uses objects uses them, too.
  const pid_t other = ::fork();
  REQUIRE(other >= 0);
  if (other == 0) {
    bool is_right = ::read(go[0], &byte, 1) == 1;
    const auto folder = at.open();
    // As one does that wants to be alone, until it has seen the lists.
    const int descriptor = ::open((at.path() + "/users").c_str(), O_RDWR);
    is_right &= lock_byte(descriptor, (listed >> 2) + 1, ByteLock::exclusive) == 0;
    is_right &= ::write(done[1], &byte, 1) == 1 && ::read(go[0], &byte, 1) == 1;
    lock_byte(descriptor, (listed >> 2) + 1, ByteLock::none);
    is_right &= !CacheUsers::Alone(folder->users(), listed).is_held();
    ::_exit(is_right ? 0 : 1);
  }
  const auto folder = at.open();
  for (int i = 0; i < kMany; ++i) folder->users().begin_use(key(i));
  CHECK(::write(go[1], &byte, 1) == 1);
  CHECK(::read(done[0], &byte, 1) == 1);
  CHECK(run_in_child([] { return 0; }) == 0);
  CHECK(::write(go[1], &byte, 1) == 1);
  int status = 0;
  CHECK(::waitpid(other, &status, 0) == other);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  for (const int end : {go[0], go[1], done[0], done[1]}) ::close(end);
}

TEST_CASE("cache users: without room for a list, there are locks") {
  const Folder at;
  OtherProcess other([&] {
    static const auto kFolder = at.open(100 << 10);
    kFolder->charge(100 << 10);
    for (int i = 0; i < kMany; ++i) kFolder->users().begin_use(key_of(i));
    return true;
  });
  const auto folder = at.open();
  CHECK(count_free(folder->users(), 0, kMany + 10) == 10);
  for (const auto& each : std::filesystem::directory_iterator(at.path())) {
    CHECK_FALSE(CacheUsers::is_list(each.path().filename().string()));
  }
}

TEST_CASE("cache users: a list that cannot be read lists everything") {
  const Folder at;
  OtherProcess other([&] {
    static const auto kFolder = at.open();
    for (int i = 0; i < kMany; ++i) kFolder->users().begin_use(key_of(i));
    return true;
  });
  const auto folder = at.open();
  CHECK(count_free(folder->users(), kMany, kMany + 10) == 10);
  SUBCASE("as it was cut short") {
    std::filesystem::resize_file(at.path() + "/users.0", 100);
  }
  SUBCASE("as it was removed") {
    std::filesystem::remove(at.path() + "/users.0");
  }
  CHECK(count_free(folder->users(), 0, kMany + 10) == 0);
  CHECK(other.end() == 0);
  CHECK(count_free(folder->users(), 0, kMany + 10) == kMany + 10);
}

TEST_CASE("cache users: lists that dead processes have left go when the folder is put in order") {
  const Folder at;
  OtherProcess other([&] {
    static const auto kFolder = at.open();
    for (int i = 0; i < kMany; ++i) kFolder->users().begin_use(key_of(i));
    return true;
  });
  CHECK(std::filesystem::exists(at.path() + "/users.0"));
  other.kill();
  const auto folder = at.open();
  CHECK_FALSE(std::filesystem::exists(at.path() + "/users.0"));
  CHECK(folder->used_bytes() == CacheLedger::empty_bytes(folder->block_bytes()));
}
