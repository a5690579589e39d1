// Index files that were made once and for all: what is written is what they are, to the bit.
// tests/golden has those of shard.gz, which is compressed, inflated, or inflated and damaged, and
// one of a shard as large as none is.
#include <doctest/doctest.h>

#include "core/index/index_file.h"
#include "core/index/opening.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

constexpr const char* kNames[] = {"plain", "damaged", "gzipped"};

std::string golden(const std::string& name) {
  return std::string(TFRFAST_GOLDEN_FOLDER) + "/" + name;
}

struct Fixture {
  TemporaryFolder folder;
  std::string path = folder / "index";

  std::string saved(const ShardIndex& index) const {
    save_index(index, path, false);
    return read_file(path);
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
  for (const std::string name : kNames) {
    CAPTURE(name);
    const auto index = load_index(golden(name + ".4.index"));
    CHECK(saved(ShardIndex(index->facts(), index->copy_offsets(),
                           {index->damage().begin(), index->damage().end()},
                           index->seek_points())) == read_file(golden(name + ".4.index")));
    CHECK(saved(*index) == read_file(golden(name + ".4.index")));
  }
  const auto sampled = load_index(golden("sampled.4.index"));
  CHECK(sampled->facts().samples_crc.has_value());
  CHECK_FALSE(load_index(golden("plain.4.index"))->facts().samples_crc.has_value());
  CHECK(saved(*sampled) == read_file(golden("sampled.4.index")));
  const ShardIndex giants = index_of_giants();
  CHECK(saved(giants) == read_file(golden("giants.4.index")));
  CHECK(load_index(golden("giants.4.index"))->copy_offsets() == giants.copy_offsets());
}

TEST_CASE_FIXTURE(Fixture, "golden indexes: they are those of their shards") {
  const auto gzipped = load_index(golden("gzipped.4.index"));
  const auto file = StoredFile::open(golden("shard.gz"));
  const auto scanned =
      index_of(*file, Compression::gzip, scan_shard(file, nullptr, Compression::gzip), true);
  CHECK(scanned->has_same_entries(*gzipped));
  CHECK(load_index(golden("plain.4.index"))->copy_offsets() == gzipped->copy_offsets());
}
