#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/index/index_places.h"
#include "core/load/loader.h"
#include "core/read/record_stream.h"
#include "core/storage/storage.h"
#include "core/storage/storage_options.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

// Files in memory, where each request counts as one on a network. Records the requests.
struct Shelf {
  struct Item {
    std::string bytes;
    std::uint64_t version = 0;
  };
  std::mutex mutex;
  std::map<std::string, Item> items;
  std::uint64_t versions = 0;
  std::vector<FileRange> announced;
  std::uint64_t announced_bytes = 0;
  std::uint64_t read_unannounced_bytes = 0;

  static Shelf& instance() {
    static auto* const shelf = new Shelf;
    return *shelf;
  }

  void put(const std::string& path, const std::string& bytes) {
    const std::lock_guard lock(mutex);
    items[path] = {bytes, ++versions};
  }

  void forget_requests() {
    const std::lock_guard lock(mutex);
    announced.clear();
    announced_bytes = read_unannounced_bytes = 0;
  }
};

FileFacts examine_item(const std::string& path, const StorageOptions& = {}) {
  Shelf& shelf = Shelf::instance();
  const std::lock_guard lock(shelf.mutex);
  const auto found = shelf.items.find(path);
  if (found == shelf.items.end()) throw_system_error(ENOENT, "Opening", path);
  return {found->second.bytes.size(), 1, {{found->second.version, 0, 0}}, true, {}};
}

constexpr StorageTraits kShelfTraits = {true, 1000, 4000, 8, 1 << 20};

class ShelvedFile final : public StoredFile {
 public:
  explicit ShelvedFile(const std::string& path)
      : StoredFile(path, examine_item(path), kShelfTraits),
        bytes_(Shelf::instance().items.at(path).bytes) {}

  using StoredFile::read;
  void read(std::span<const ReadRange> ranges) const override {
    Shelf& shelf = Shelf::instance();
    const std::lock_guard lock(shelf.mutex);
    for (const ReadRange& each : ranges) {
      if (each.offset > bytes() || each.bytes > bytes() - each.offset) throw_shrunk(bytes());
      if (each.bytes > 0) std::memcpy(each.out, bytes_.data() + each.offset, each.bytes);
      const bool was_announced = std::any_of(
          shelf.announced.begin(), shelf.announced.end(), [&each](const FileRange& range) {
            return range.offset <= each.offset &&
                   each.offset + each.bytes <= range.offset + range.bytes;
          });
      if (!was_announced) shelf.read_unannounced_bytes += each.bytes;
    }
  }

  std::unique_ptr<Announcement> announce(std::span<const FileRange> ranges,
                                         Reads) const noexcept override {
    Shelf& shelf = Shelf::instance();
    const std::lock_guard lock(shelf.mutex);
    for (const FileRange& each : ranges) {
      shelf.announced.push_back(each);
      shelf.announced_bytes += each.bytes;
    }
    return nullptr;
  }

 private:
  const std::string bytes_;
};

constexpr Storage kShelf = {
    "shelf",
    kShelfTraits,
    [](const std::string& path, IoMode, const StorageOptions&)
        -> std::shared_ptr<const StoredFile> { return std::make_shared<ShelvedFile>(path); },
    examine_item,
};

struct Fixture {
  Fixture() {
    static const bool once = (add_storage(kShelf), true);
    (void)once;
    shard.write_records(500, 100);
    Shelf::instance().put("shelf://data/set/shard", shard.bytes());
    Shelf::instance().forget_requests();
  }
  ~Fixture() { Shelf::instance().items.clear(); }

  std::vector<std::int64_t> shuffled() const {
    std::vector<std::int64_t> numbers(shard.records());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = static_cast<std::int64_t>(i * 7 % numbers.size());
    }
    return numbers;
  }

  const TemporaryFolder folder;
  const Environment cache{"TFRFAST_CACHE_DIR", folder / "cache"};
  TestShard shard{folder / "shard"};
  Shelf& shelf = Shelf::instance();
  const std::string path = "shelf://data/set/shard";
};

}  // namespace

TEST_CASE_FIXTURE(Fixture,
                  "storage: a path's scheme chooses it, and none that is known is a file's") {
  CHECK(is_local(shard.path()));
  CHECK(is_local("nobody://data/shard"));
  CHECK(is_local("://data"));
  CHECK_FALSE(is_local(path));
  CHECK(examine_file(path).bytes == shard.size());
  const Error missing = error_of([] { StoredFile::open("shelf://data/set/missing"); });
  CHECK(missing.system_error() == ENOENT);
}

TEST_CASE_FIXTURE(Fixture, "storage: records are the same in every storage") {
  for (const Verify verify : {Verify::full, Verify::header}) {
    const auto here = open_reader({shard.path()}, {IoMode::pread, verify});
    const auto there = open_reader({path}, {IoMode::automatic, verify});
    REQUIRE(there->record_count() == here->record_count());
    CHECK(there->is_remote());
    CHECK(strings_of(*there->read(shuffled())) == strings_of(*here->read(shuffled())));
  }
  RecordStream stream(path);
  std::span<const std::uint8_t> payload;
  for (std::size_t number = 0; stream.next(&payload); ++number) {
    CHECK(std::string(payload.begin(), payload.end()) == shard.record(number));
  }
  CHECK(stream.record() == shard.records());
}

TEST_CASE_FIXTURE(Fixture, "storage: damage is reported the same in every storage") {
  shard.flip_bit(shard.offset(100) + 40).flip_bit(shard.offset(200) + 1);
  shelf.put(path, shard.bytes());
  Opening skip;
  skip.skip_damage = true;
  const auto here = open_reader({shard.path()}, skip);
  const auto there = open_reader({path}, skip);
  CHECK(strings_of(*there->read_range(0, 499).batch) ==
        strings_of(*here->read_range(0, 499).batch));
  CHECK(there->skipped().size() == 2);
  CHECK(error_of([&] { open_reader({path}); }).kind() == ErrorKind::corrupt);
}

TEST_CASE_FIXTURE(Fixture, "storage: every reader announces what it will read") {
  const auto reader = open_reader({path});
  CHECK(shelf.announced_bytes > 0);  // by the walk, except the first bytes

  shelf.forget_requests();
  reader->read(shuffled());
  CHECK(shelf.read_unannounced_bytes == 0);
  CHECK(shelf.announced.size() == 1);  // sorted, and gaps below the trait bridged
  CHECK(shelf.announced_bytes == shard.size());

  shelf.forget_requests();
  const std::vector<std::int64_t> apart{400, 0, 200};
  reader->read(apart);
  CHECK(shelf.read_unannounced_bytes == 0);
  REQUIRE(shelf.announced.size() == 3);
  CHECK(shelf.announced[1].offset == shard.offset(200));

  shelf.forget_requests();
  RecordStream stream(path);
  std::span<const std::uint8_t> payload;
  while (stream.next(&payload)) {
  }
  CHECK(shelf.announced_bytes == shard.size());
  CHECK(shelf.announced.front().bytes == kShelfTraits.request_bytes);
}

TEST_CASE_FIXTURE(Fixture, "storage: a stream reads ahead as far as it may, and no further") {
  RecordStream stream(path, 0, 0, {{}, 2 * kShelfTraits.request_bytes});
  stream.announce();
  CHECK(shelf.announced.front().bytes == kShelfTraits.request_bytes);
  std::span<const std::uint8_t> payload;
  REQUIRE(stream.next(&payload));
  const FileRange last = shelf.announced.back();
  CHECK(last.offset + last.bytes == 2 * kShelfTraits.request_bytes);
  while (stream.next(&payload)) {
  }
  CHECK(stream.record() == shard.records());
  // The bytes that reveal the compression are read twice.
  CHECK(shelf.announced_bytes == shard.size() + kHeaderBytes);
}

TEST_CASE_FIXTURE(Fixture,
                  "storage: an index beside the data is found, and fits until they change") {
  const std::shared_ptr<const StoredFile> object = StoredFile::open(path);
  const std::string made =
      save_index_of_object(object, open_indexed(object, IndexOptions{}), folder / "made", false);
  std::filesystem::remove_all(folder / "cache");
  shelf.put("shelf://data/set.tfrfast/index", read_file(made));

  const IndexOptions require{IndexUse::require, "", {}};
  const IndexedShard found = open_indexed(path, IoMode::automatic, require);
  CHECK(found.index_path == "shelf://data/set.tfrfast/index");
  CHECK(found.index->record_count() == shard.records());
  CHECK(error_of([] { sibling_index_folder("shelf://shard"); }).kind() == ErrorKind::invalid);

  // The same number of bytes and the same time: only the version differs.
  shelf.put(path, shard.bytes());
  int steps = 0;
  open_indexed(path, IoMode::automatic, require, [&](std::uint64_t) { ++steps; });
  CHECK(steps > 1);  // confirmed by a walk
}

TEST_CASE_FIXTURE(Fixture,
                  "storage: a shard without an index is walked once, and the cache keeps it") {
  CHECK(open_indexed(path, IoMode::automatic, {}).was_built);
  CHECK_FALSE(open_indexed(path, IoMode::automatic, {}).was_built);
  CHECK(open_indexed(path, IoMode::automatic, {}).index_path == cached_index_path(path));
}
