// The index of a folder: what it holds, how loose indexes are collected into it, who finds what.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <thread>

#include "core/base/bytes.h"
#include "core/index/folder_merge.h"
#include "core/index/index_file.h"
#include "core/index/index_keeping.h"
#include "core/index/index_places.h"
#include "core/index/index_search.h"
#include "core/index/opening.h"
#include "core/storage/folder_lock.h"
#include "core/storage/folders.h"
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
  // Three shards, one of them damaged, with loose indexes.
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

TEST_CASE_FIXTURE(Fixture, "folder index: it holds what the loose ones held, and they are gone") {
  const auto shards = indexed_shards();
  std::vector<std::shared_ptr<const ShardIndex>> loose;
  for (const std::string& each : shards) loose.push_back(load_index(sibling_index_path(each)));
  CHECK(merge_indexes(indexes, Merge::now) == 4);
  CHECK(names() == Names{"index"});
  CHECK(sections() == Names{"a", "b", "c", "torn"});
  const auto index = FolderIndex::load(path);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const DirectoryEntry* const entry = index->find(name_of(shards[i]));
    REQUIRE(entry != nullptr);
    CHECK(index->open(*entry)->has_same_entries(*loose[i]));
    const IndexedShard shard =
        open_indexed(shards[i], IoMode::automatic, {IndexUse::proven, {}, {}});
    CHECK(shard.index_path == path);
    CHECK(shard.index->copy_offsets() == loose[i]->copy_offsets());
  }
  CHECK(index->find("") == nullptr);
  CHECK(index->find("aa") == nullptr);
  CHECK(index->find("zz") == nullptr);
  CHECK(merge_indexes(indexes, Merge::now) == 0);
}

TEST_CASE_FIXTURE(Fixture, "folder index: the same sections always give the same bytes") {
  for (const std::string name : {"plain", "gzipped", "damaged"}) {
    make_folders(indexes);
    write_file(loose_index_path(indexes, name),
               read_file(std::string(TFRFAST_GOLDEN_FOLDER) + "/" + name + ".4.index"));
    merge_indexes(indexes, Merge::now);
    add_shard(name, 1);  // otherwise the next merge drops it
  }
  CHECK(read_file(path) == read_file(std::string(TFRFAST_GOLDEN_FOLDER) + "/folder.1.index"));
}

TEST_CASE_FIXTURE(Fixture, "folder index: a later merge keeps, replaces and drops sections") {
  const auto shards = indexed_shards();
  merge_indexes(indexes, Merge::now);
  add_shard("b", 7);  // another state
  add_shard("new", 3);
  ::unlink((data + "/c").c_str());
  build_index(data + "/b", "", false);
  build_index(data + "/new", "", false);
  CHECK(names() == Names{"b.index", "index", "new.index"});
  CHECK(is_found(data + "/b"));
  CHECK(merge_indexes(indexes, Merge::now) == 2);
  CHECK(sections() == Names{"a", "b", "new", "torn"});
  CHECK(open_indexed(data + "/b", IoMode::automatic, {IndexUse::proven, {}, {}})
            .index->record_count() == 7);
  CHECK(is_found(data + "/a"));
}

TEST_CASE_FIXTURE(Fixture, "folder index: with few new ones a merge can wait") {
  for (int i = 0; i < 40; ++i) {
    build_index(add_shard("s" + std::to_string(i), 1), "", false);
    merge_indexes(indexes, Merge::if_many);
    CHECK(is_found(data + "/s" + std::to_string(i)));
  }
  CHECK(sections().size() < 40);
  CHECK(sections().size() > 30);
  CHECK(sections().size() + names().size() - 1 == 40);
}

TEST_CASE_FIXTURE(Fixture, "folder index: who looked before a merge finds what was collected") {
  const auto shards = indexed_shards();
  IndexOptions options{IndexUse::proven, {}, {}};
  options.folders = std::make_shared<IndexFolders>();
  CHECK(options.folders->at(indexes)->index() == nullptr);
  merge_indexes(indexes, Merge::now);
  for (const std::string& each : shards) {
    CHECK(open_indexed(each, IoMode::automatic, options).index_path == path);
  }
}

TEST_CASE_FIXTURE(Fixture, "folder index: an index that its writer has yet to stamp stays loose") {
  const std::string shard = add_shard("a", 5);
  build_index(shard, "", false);
  ShardFacts facts = load_index(sibling_index_path(shard))->facts();
  facts.by_writer = true;
  facts.settled = false;
  const auto index = load_index(sibling_index_path(shard));
  save_index(ShardIndex(facts, index->copy_offsets(), {}), sibling_index_path(shard), false);
  CHECK(merge_indexes(indexes, Merge::now) == 0);
  CHECK(names() == Names{"a.index"});
}

TEST_CASE_FIXTURE(Fixture, "folder index: what cannot be used is neither collected nor lost") {
  const auto shards = indexed_shards();
  write_file(indexes + "/a.index", read_file(indexes + "/a.index").substr(0, 190));
  CHECK(merge_indexes(indexes, Merge::now) == 3);
  CHECK(names() == Names{"a.index", "index"});
  CHECK_THROWS_AS(is_found(shards[1]), Error);
  CHECK(is_found(shards[0]));
}

TEST_CASE_FIXTURE(Fixture, "folder index: one that cannot be read is not replaced") {
  const auto shards = indexed_shards();
  const Names before = names();
  REQUIRE(::symlink("index", path.c_str()) == 0);  // leads nowhere, again and again
  CHECK(error_of([&] { merge_indexes(indexes, Merge::now); }).kind() == ErrorKind::io);
  ::unlink(path.c_str());
  CHECK(names() == before);
}

TEST_CASE_FIXTURE(Fixture, "folder index: a hidden folder in the data folder is nobody's sibling") {
  const std::string hidden = data + "/.tfrfast";
  REQUIRE(::mkdir((data + "/sub").c_str(), 0777) == 0);
  for (const std::string name : {"sub/a", "b"}) {
    build_index(add_shard(name, 3), hidden, false);
    merge_indexes(hidden, Merge::now);
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
  merge_indexes(indexes, Merge::now);
  std::string later = read_file(path);
  later[8] = 2;
  write_file(path, later);
  const Error error = error_of([&] { is_found(shards[0]); });
  CHECK(error.kind() == ErrorKind::stale_index);
  CHECK(holds(error.message(), "has version 2 and this tfrfast reads version 1"));
  build_index(shards[0], "", false);
  CHECK(merge_indexes(indexes, Merge::now) == 0);
  CHECK(read_file(path) == later);
  CHECK(is_found(shards[0]));
}

TEST_CASE_FIXTURE(Fixture, "folder index: every flipped byte and every cut is harmless") {
  const auto shards = indexed_shards();
  merge_indexes(indexes, Merge::now);
  const std::string good = read_file(path);
  std::vector<std::vector<std::uint64_t>> offsets;
  {
    const auto index = FolderIndex::load(path);
    for (const DirectoryEntry& each : index->entries()) {
      offsets.push_back(index->open(each)->copy_offsets());
    }
  }
  const auto try_all = [&](const std::string& bytes) {
    write_file(path, bytes);
    std::size_t accepted = 0;
    try {
      const auto index = FolderIndex::load(path);
      for (std::size_t i = 0; i < offsets.size(); ++i) {
        try {
          const auto found = index->open(index->entries()[i])->copy_offsets();
          REQUIRE(found == offsets[i]);
          ++accepted;
        } catch (const Error& error) {
          REQUIRE(error.kind() == ErrorKind::stale_index);
        }
      }
    } catch (const Error& error) {
      REQUIRE(error.kind() == ErrorKind::stale_index);
    }
    return accepted;
  };
  CHECK(try_all(good) == 4);
  std::size_t unnoticed = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    unnoticed += try_all(bad) == 4;
  }
  CHECK(unnoticed == 0);
  for (std::size_t size = 0; size < good.size(); size += 3)
    CHECK(try_all(good.substr(0, size)) == 0);
}

TEST_CASE_FIXTURE(Fixture, "folder index: merges and new indexes at the same time lose nothing") {
  constexpr int kThreads = 4;
  constexpr int kShards = 40;
  for (int i = 0; i < kThreads * kShards; ++i) add_shard("s" + std::to_string(i), 2);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([this, thread] {
        for (int i = 0; i < kShards; ++i) {
          const std::string shard = data + "/s" + std::to_string(thread * kShards + i);
          build_index(shard, "", false);
          if (i % 4 == thread) merge_indexes(indexes, Merge::now);
          REQUIRE(is_found(shard));
        }
      });
    }
  }
  merge_indexes(indexes, Merge::now);
  CHECK(sections().size() == kThreads * kShards);
  CHECK(names() == Names{"index"});
}

TEST_CASE_FIXTURE(Fixture,
                  "folder index: in a folder for many data folders, names are told apart") {
  const std::string shared = place / "shared";
  const std::string other = place / "other";
  REQUIRE(::mkdir(other.c_str(), 0777) == 0);
  const std::string one = add_shard("a", 5);
  TestShard two(other + "/a");
  two.write_record(payload(9));
  build_index(one, shared, false);
  merge_indexes(shared, Merge::now);
  build_index(two.path(), shared, false);
  merge_indexes(shared, Merge::now);
  build_index(one, shared, true);  // its own name is its own, wherever its index is
  merge_indexes(shared, Merge::now);
  CHECK(FolderIndex::load(shared + "/index")->entries().size() == 2);
  const IndexOptions options{IndexUse::proven, shared, {}};
  CHECK(open_indexed(one, IoMode::automatic, options).index->record_count() == 5);
  CHECK(open_indexed(two.path(), IoMode::automatic, options).index->record_count() == 1);
}
