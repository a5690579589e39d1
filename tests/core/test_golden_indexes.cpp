// Compares a written index of a folder, bit by bit, with the golden index in tests/golden. The
// golden index describes shard.gz, the same shard inflated, the inflated shard with damage, and an
// impossibly large shard.
#include <doctest/doctest.h>

#include "core/index/folder_writing.h"
#include "core/index/opening.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

std::string golden(const std::string& name) {
  return std::string(TFRFAST_GOLDEN_FOLDER) + "/" + name;
}

struct Fixture {
  TemporaryFolder folder;
  std::string path = folder / "index";
  std::shared_ptr<const FolderIndex> whole = FolderIndex::load(golden("folder.2.index"));

  std::shared_ptr<const ShardIndex> open(const std::string& name) const {
    const DirectoryEntry* const entry = whole->find(name, 0);
    REQUIRE(entry != nullptr);
    return whole->open(*entry);
  }
};

// Lines of several slopes and widths, and offsets that no line fits.
ShardIndex index_of_giants() {
  std::vector<std::uint64_t> offsets{0};
  const auto add = [&offsets](std::uint64_t bytes) { offsets.push_back(offsets.back() + bytes); };
  for (std::uint64_t i = 0; i < 127; ++i) add(100);
  for (std::uint64_t i = 0; i < 128; ++i) add(50 + i * i % 97);
  for (std::uint64_t i = 0; i < 128; ++i) add(std::uint64_t{5'000'000'000} + i);
  for (std::uint64_t i = 0; i < 20; ++i) add(std::uint64_t{1} << 58);
  ShardFacts facts{offsets.back(),
                   -1'234'567'890,
                   offsets.back(),
                   Compression::none,
                   {{1, 2, ~std::uint64_t{2}}}};
  facts.settled = true;
  return ShardIndex(facts, offsets, {});
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "golden indexes: they are written as they always were") {
  const auto again = [](const ShardIndex& index) {
    return ShardIndex(index.facts(), index.copy_packed().unpack(),
                      {index.damage().begin(), index.damage().end()}, index.seek_points());
  };
  for (const bool is_made_again : {false, true}) {
    for (const std::string name : {"plain", "giants", "gzipped", "damaged", "sampled"}) {
      const auto index = open(name);
      const ShardIndex made = again(*index);
      keep_index({folder.path(), name, 0}, is_made_again ? made : *index);
    }
    compact_index(folder.path());
    CHECK(read_file(path) == read_file(golden("folder.2.index")));
  }
  keep_index({folder.path(), "giants", 0}, index_of_giants());
  compact_index(folder.path());
  CHECK(read_file(path) == read_file(golden("folder.2.index")));
}

TEST_CASE_FIXTURE(Fixture, "golden indexes: they are those of their shards") {
  const auto gzipped = open("gzipped");
  const auto file = StoredFile::open(golden("shard.gz"));
  const auto walked =
      index_of(*file, Compression::gzip, walk_shard(file, nullptr, Compression::gzip), true);
  CHECK(walked->has_same_entries(*gzipped));
  CHECK(open("plain")->copy_packed().unpack() == gzipped->copy_packed().unpack());
  CHECK(open("giants")->copy_packed().unpack() == index_of_giants().copy_packed().unpack());
  CHECK(open("sampled")->facts().samples_crc.has_value());
  CHECK_FALSE(open("plain")->facts().samples_crc.has_value());
}
