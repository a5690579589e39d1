// The index of a folder: contents, additions, rewriting, and look-ups.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <thread>

#include "core/base/bytes.h"
#include "core/index/folder_writing.h"
#include "core/index/index_places.h"
#include "core/index/opening.h"
#include "core/storage/local/folder_lock.h"
#include "core/storage/local/folders.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

struct Fixture {
  TemporaryFolder place;
  std::string data = place / "data";
  std::string indexes = place / "data.tfrfast";
  std::string path = indexes + "/index";

  Fixture() { REQUIRE(::mkdir(data.c_str(), 0777) == 0); }

  std::string add_shard(const std::string& name, unsigned records) const {
    TestShard shard(data + "/" + name);
    for (unsigned i = 0; i < records; ++i) shard.write_record(payload(i * i % 50, i));
    return shard.path();
  }
  // Four shards, one of them damaged, and their indexes.
  std::vector<std::string> indexed_shards() const {
    std::vector<std::string> paths{add_shard("b", 300), add_shard("a", 5), add_shard("c", 0)};
    TestShard torn(data + "/torn");
    torn.write_record(payload(10)).append("torn");
    paths.push_back(torn.path());
    for (const std::string& each : paths) build_index(each, "", false);
    return paths;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found = list_folder(indexes);
    std::erase_if(found, [](const std::string& name) { return name.starts_with("."); });
    std::sort(found.begin(), found.end());
    return found;
  }
  std::vector<std::string> sections() const {
    const auto index = FolderIndex::load(path);
    std::vector<std::string> found;
    if (index == nullptr) return found;
    for (const DirectoryEntry& each : index->entries()) found.emplace_back(index->name_of(each));
    return found;
  }
  bool is_found(const std::string& shard) const {
    return open_indexed(shard, IoMode::automatic, {IndexUse::proven, {}, {}}).index != nullptr;
  }
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE_FIXTURE(Fixture, "folder index: it holds what was added, in parts and as one") {
  const auto shards = indexed_shards();
  for (const std::uint64_t parts : {4, 1}) {
    CHECK(names() == Names{"index"});
    CHECK(sections() == Names{"a", "b", "c", "torn"});
    const auto index = FolderIndex::load(path);
    CHECK(index->part_count() == parts);
    CHECK(index->left_out().empty());
    for (const std::string& each : shards) {
      const IndexedShard shard = open_indexed(each, IoMode::automatic, {IndexUse::proven, {}, {}});
      const auto walked = open_indexed(each, IoMode::automatic, {IndexUse::memory, {}, {}});
      CHECK(shard.index_path == path);
      CHECK(shard.index->has_same_entries(*walked.index));
      const DirectoryEntry* const entry = index->find(name_of(each), 0);
      REQUIRE(entry != nullptr);
      CHECK(index->open(*entry)->has_same_entries(*walked.index));
    }
    for (const char* none : {"", "aa", "zz"}) CHECK(index->find(none).empty());
    CHECK(index->find("a", 1) == nullptr);
    compact_index(indexes);
  }
}

TEST_CASE_FIXTURE(Fixture, "folder index: the later entry counts, and what is gone is dropped") {
  const auto shards = indexed_shards();
  compact_index(indexes);
  const auto before = FolderIndex::load(path);
  add_shard("b", 7);  // another state
  add_shard("new", 3);
  ::unlink((data + "/c").c_str());
  build_index(data + "/b", "", false);
  build_index(data + "/new", "", false);
  for (const Names& expected :
       {Names{"a", "b", "c", "new", "torn"}, Names{"a", "b", "new", "torn"}}) {
    CHECK(sections() == expected);
    CHECK(open_indexed(data + "/b", IoMode::automatic, {IndexUse::proven, {}, {}})
              .index->record_count() == 7);
    CHECK(is_found(data + "/a"));
    CHECK(is_found(data + "/new"));
    compact_index(indexes);
  }
  // An index that was opened earlier keeps its contents.
  CHECK(before->open(*before->find("b", 0))->record_count() == 300);
}

TEST_CASE_FIXTURE(Fixture, "folder index: with many parts it is written anew") {
  for (int i = 0; i < 300; ++i) {
    build_index(add_shard("s" + std::to_string(i), 1), "", false);
    if (i % 50 == 0) CHECK(is_found(data + "/s" + std::to_string(i)));
  }
  const auto index = FolderIndex::load(path);
  CHECK(index->entries().size() == 300);
  CHECK(index->part_count() < 200);
}

TEST_CASE_FIXTURE(Fixture, "folder index: one that was added to often is written anew") {
  std::vector<std::uint64_t> offsets{0};
  for (std::uint64_t i = 0; i < 700'000; ++i)
    offsets.push_back(offsets.back() + (i * i << 15) + 16);
  const ShardIndex large({offsets.back(), 1, offsets.back(), Compression::none}, offsets, {});
  for (int i = 0; i < 6; ++i) keep_index({indexes, "growing", 0}, large);
  const std::uint64_t kept = FolderIndex::load(path)->entries().front().sections.bytes;
  CHECK(kept > 3 << 20);
  CHECK(read_file(path).size() < (16 << 20) + 2 * kept);
}

TEST_CASE_FIXTURE(Fixture, "folder index: a lock waits for the folder that has the name now") {
  std::filesystem::create_directory(indexes);
  std::optional<FolderLock> first(std::in_place, indexes, 1000);
  REQUIRE(first->is_held());
  std::thread waiting([&] {
    const FolderLock second(indexes, 1000 * kPatienceSeconds);
    CHECK(second.is_held());
    CHECK_FALSE(FolderLock(indexes, 0).is_held());
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  // The name always has a folder, because the other thread may come at any moment.
  std::filesystem::create_directory(place / "new");
  std::filesystem::rename(place / "new", indexes);
  first.reset();
  waiting.join();
}

TEST_CASE_FIXTURE(Fixture, "folder index: what was not finished counts as nothing") {
  indexed_shards();
  const std::string whole = read_file(path);
  const std::string shard = add_shard("new", 100);
  const auto index = open_indexed(shard, IoMode::automatic, {IndexUse::memory, {}, {}}).index;
  { const IndexAddition given_up(sibling_place(shard), *index); }
  CHECK(sections() == Names{"a", "b", "c", "torn"});
  CHECK(read_file(path).size() > whole.size());
  // Bytes after the end do not count.
  write_file(path, whole + std::string(1000, '\7'));
  CHECK(sections() == Names{"a", "b", "c", "torn"});
  build_index(shard, "", false);
  CHECK(is_found(shard));
  CHECK(sections() == Names{"a", "b", "c", "new", "torn"});
}

TEST_CASE_FIXTURE(Fixture, "folder index: a process may be killed at any moment") {
  if (!kAllocatorSurvivesFork) return;
  const auto shards = indexed_shards();
  for (int i = 0; i < 100; ++i) add_shard("s" + std::to_string(i), 20);
  for (int round = 0; round < 25; ++round) {
    const pid_t child = start_child([&] {
      for (int i = 0;; ++i) {
        build_index(data + "/s" + std::to_string(i % 100), "", true);
        if (i % 10 == 0) compact_index(indexes);
      }
      return 0;
    });
    ::usleep(static_cast<unsigned>(1000 + 1700 * round % 9000));
    ::kill(child, SIGKILL);
    status_of(child);
    const auto index = FolderIndex::load(path);
    REQUIRE(index != nullptr);
    REQUIRE(index->left_out().empty());
    for (const DirectoryEntry& each : index->entries()) {
      const auto found = index->open(each);
      if (index->name_of(each).starts_with("s"))
        REQUIRE(found->copy_packed().unpack().size() == 21);
    }
    for (const std::string& each : shards) REQUIRE(is_found(each));
  }
  build_index(data + "/s99", "", true);
  compact_index(indexes);
  CHECK(is_found(data + "/s99"));
  for (const std::string& name : names()) CHECK(name == "index");
}

TEST_CASE_FIXTURE(Fixture, "folder index: another user's stays his, and both count") {
  const std::string a = add_shard("a", 5);
  const std::string b = add_shard("b", 6);
  build_index(a, "", false);
  const std::string his = read_file(path);
  const std::string mine = path + "-" + std::to_string(::geteuid());
  constexpr uid_t kHim = 54321;
  for (const std::string& each : {path, a}) {
    if (::chown(each.c_str(), kHim, static_cast<gid_t>(-1)) != 0) return;  // only root may do that
  }
  CHECK(build_index(b, "", false).index_path == mine);
  compact_index(indexes);
  CHECK(read_file(path) == his);
  CHECK(build_index(a, "", true).index_path == mine);
  CHECK(open_indexed(b, IoMode::automatic, {IndexUse::proven, {}, {}}).index_path == mine);
  CHECK(names() == Names{"index", name_of(mine)});
  CHECK(is_found(a));
  CHECK(is_found(b));
}

TEST_CASE_FIXTURE(Fixture, "folder index: one that cannot be read is not replaced") {
  const auto shards = indexed_shards();
  const std::string before = read_file(path);
  REQUIRE(std::rename(path.c_str(), (path + ".aside").c_str()) == 0);
  REQUIRE(::symlink("index", path.c_str()) == 0);  // a link to itself
  CHECK(error_of([&] { build_index(add_shard("d", 1), "", false); }).kind() == ErrorKind::io);
  REQUIRE(std::rename((path + ".aside").c_str(), path.c_str()) == 0);
  CHECK(read_file(path) == before);
}

TEST_CASE_FIXTURE(Fixture, "folder index: a hidden folder in the data folder is nobody's sibling") {
  const std::string hidden = data + "/.tfrfast";
  REQUIRE(::mkdir((data + "/sub").c_str(), 0777) == 0);
  for (const std::string name : {"sub/a", "b"}) {
    build_index(add_shard(name, 3), hidden, false);
    compact_index(hidden);
  }
  CHECK(FolderIndex::load(hidden + "/index")->entries().size() == 2);
}

TEST_CASE_FIXTURE(Fixture, "folder lock: it keeps threads out, whatever they call the folder") {
  const FolderLock held(data, 0);
  REQUIRE(held.is_held());
  CHECK(!FolderLock(data + "/.", 20).is_held());
}

TEST_CASE_FIXTURE(Fixture, "folder lock: a forked child gets it after its parent") {
  auto held = std::make_unique<FolderLock>(data, 0);
  REQUIRE(held->is_held());
  const pid_t child = start_child([&] { return FolderLock(data, 5000).is_held() ? 0 : 1; });
  held.reset();
  CHECK(status_of(child) == 0);
}

TEST_CASE_FIXTURE(Fixture, "folder index: one of a later version is refused by name, and stays") {
  const auto shards = indexed_shards();
  std::string later = read_file(path);
  later[8] = 3;
  store_little_endian<std::uint32_t>(reinterpret_cast<std::uint8_t*>(&later[60]),
                                     crc32c(bytes_of(later.data()), 60));
  write_file(path, later);
  const Error error = error_of([&] { is_found(shards[0]); });
  CHECK(error.kind() == ErrorKind::stale_index);
  CHECK(holds(error.message(), "has version 3 and this tfrfast reads version 2"));
  const Error refused = error_of([&] { build_index(shards[0], "", false); });
  CHECK(refused.kind() == ErrorKind::io);
  CHECK(holds(refused.message(), "A later version of tfrfast made it."));
  CHECK_THROWS_AS(compact_index(indexes), Error);
  CHECK(read_file(path) == later);
}

TEST_CASE_FIXTURE(Fixture, "folder index: without a middle part, what is before and after counts") {
  const auto shards = indexed_shards();
  compact_index(indexes);
  std::string bytes = read_file(path);
  const std::size_t second = bytes.size();
  build_index(add_shard("new", 3), "", false);
  build_index(add_shard("newer", 4), "", false);
  bytes = read_file(path);
  bytes[second + 50] ^= 1;
  write_file(path, bytes);
  CHECK(sections() == Names{"a", "b", "c", "newer", "torn"});
  CHECK(holds(FolderIndex::load(path)->left_out(), "damaged at byte " + std::to_string(second)));
  const Error error = error_of([&] { is_found(data + "/new"); });
  CHECK(holds(error.message(), "damaged at byte " + std::to_string(second)));
  build_index(data + "/new", "", false);
  CHECK(is_found(data + "/new"));
  compact_index(indexes);
  CHECK(FolderIndex::load(path)->left_out().empty());
  for (const std::string& each : shards) CHECK(is_found(each));
}

TEST_CASE_FIXTURE(Fixture, "folder index: whoever adds at the same time, nothing is lost") {
  constexpr int kBuilders = 4;
  constexpr int kShards = 40;
  for (int i = 0; i < 2 * kBuilders * kShards; ++i) add_shard("s" + std::to_string(i), 2);
  const auto build = [this](int builder) {
    for (int i = 0; i < kShards; ++i) {
      const std::string shard = data + "/s" + std::to_string(builder * kShards + i);
      build_index(shard, "", false);
      if (i % 8 == builder) compact_index(indexes);
      if (!is_found(shard)) return 1;
    }
    return 0;
  };
  std::vector<pid_t> children;  // forked before there are threads that allocate
  for (int each = 0; each < kBuilders; ++each)
    children.push_back(start_child([&] { return build(each); }));
  {
    std::vector<std::jthread> threads;
    for (int each = 0; each < kBuilders; ++each) {
      threads.emplace_back([&, each] { CHECK(build(kBuilders + each) == 0); });
    }
  }
  for (const pid_t child : children) CHECK(status_of(child) == 0);
  CHECK(sections().size() == 2 * kBuilders * kShards);
  CHECK(names() == Names{"index"});
}

TEST_CASE_FIXTURE(Fixture, "folder index: two are joined, and the added one comes first") {
  const std::string a = add_shard("a", 5);
  build_index(a, "", false);
  const std::string other = place / "other";
  keep_index({other, "a", 0}, *open_indexed(add_shard("x", 9), IoMode::automatic, {}).index);
  keep_index({other, "b", 0}, *open_indexed(a, IoMode::automatic, {}).index);
  join_index(indexes, other + "/index");
  const auto index = FolderIndex::load(path);
  CHECK(sections() == Names{"a", "b"});
  CHECK(index->open(*index->find("a", 0))->record_count() == 9);
  CHECK(index->part_count() == 1);
}
