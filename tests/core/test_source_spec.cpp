#include "core/read/source_spec.h"

#include <doctest/doctest.h>

#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

SourceSpec some_spec() {
  SourceSpec spec;
  spec.planned = true;
  spec.compression = Compression::zlib;
  spec.verify = Verify::header;
  spec.io = IoMode::pread;
  spec.index_use = IndexUse::require;
  spec.index_folder = "/indexes";
  spec.storage.access = "options";
  spec.shards = {{"/data/one", 100, 3}, {std::string("/data/t\0wo", 10), 1ULL << 62, 1ULL << 61}};
  return spec;
}

void check_refused(const std::string& bytes) {
  const Error error = error_of([&] { SourceSpec::decode(bytes); });
  CHECK(error.kind() == ErrorKind::invalid);
  CHECK(holds(error.message(), "Make the source, or the graph that holds it, again."));
}

}  // namespace

TEST_CASE("source spec: what was encoded is decoded, and encoded to the same bytes") {
  const std::string encoded = some_spec().encode();
  const SourceSpec spec = SourceSpec::decode(encoded);
  CHECK(spec.encode() == encoded);
  CHECK(spec.planned);
  CHECK(!spec.skip_damage);
  CHECK(spec.compression == Compression::zlib);
  CHECK(spec.verify == Verify::header);
  CHECK(spec.io == IoMode::pread);
  CHECK(spec.index_use == IndexUse::require);
  CHECK(spec.index_folder == "/indexes");
  CHECK(spec.storage.access == "options");
  REQUIRE(spec.shards.size() == 2);
  CHECK(spec.shards[1].path.size() == 10);
  CHECK(spec.shards[1].file_bytes == 1ULL << 62);
}

TEST_CASE("source spec: every field tells specs apart") {
  const auto changed = [](auto change) {
    SourceSpec spec = some_spec();
    change(spec);
    return spec.encode() != some_spec().encode();
  };
  CHECK(changed([](SourceSpec& spec) { spec.planned = false; }));
  CHECK(changed([](SourceSpec& spec) { spec.storage.access = "other"; }));
  CHECK(changed([](SourceSpec& spec) { spec.storage = {}; }));
  CHECK(changed([](SourceSpec& spec) { spec.storage.cache_folder = "/cache"; }));
  CHECK(changed([](SourceSpec& spec) { spec.storage.cache_limit_bytes = 1; }));
  CHECK(changed([](SourceSpec& spec) { spec.storage.place = "http://one"; }));
  CHECK(changed([](SourceSpec& spec) { spec.skip_damage = true; }));
  CHECK(changed([](SourceSpec& spec) { spec.compression = {}; }));
  CHECK(changed([](SourceSpec& spec) { spec.verify = Verify::full; }));
  CHECK(changed([](SourceSpec& spec) { spec.io = IoMode::mapped; }));
  CHECK(changed([](SourceSpec& spec) { spec.index_use = IndexUse::memory; }));
  CHECK(changed([](SourceSpec& spec) { spec.index_folder = ""; }));
  CHECK(changed([](SourceSpec& spec) { spec.shards[0].path = "/data/other"; }));
  CHECK(changed([](SourceSpec& spec) { spec.shards[0].record_count = 4; }));
  CHECK(changed([](SourceSpec& spec) { spec.parts = {{2, {}}}; }));
  CHECK(changed([](SourceSpec& spec) { spec.edition = 1; }));
}

TEST_CASE("source spec: every compression has a number, and other numbers mean to find out") {
  for (const auto compression : {Compression::none, Compression::gzip, Compression::zlib}) {
    CHECK(compression_of_code(compression_code(compression)) == compression);
  }
  CHECK(compression_of_code(compression_code({})) == std::nullopt);
  for (const std::int64_t code : {std::int64_t{-1}, std::int64_t{4}, std::int64_t{1} << 62}) {
    CHECK(compression_of_code(code) == std::nullopt);
  }
}

TEST_CASE("source spec: choices that do not exist, and too many shards, are refused") {
  const auto encoded_numbers = [](const std::vector<std::uint64_t>& numbers) {
    Encoder encoder(SourceSpec::kEncoding);
    for (const std::uint64_t number : numbers) encoder.number(number);
    return encoder.finish();
  };
  // Two flags, compression, verify, io, index use, the folder's length, the number of shards,
  // six of the storage, the number of parts, the edition.
  CHECK(SourceSpec::decode(encoded_numbers(std::vector<std::uint64_t>(16))).shards.empty());
  for (std::size_t at = 0; at < 6; ++at) {
    std::vector<std::uint64_t> numbers(16);
    numbers[at] = 4;
    check_refused(encoded_numbers(numbers));
  }
  check_refused(encoded_numbers({0, 0, 0, 0, 0, 0, 0, std::uint64_t{1} << 60}));
}

TEST_CASE("source spec: parts have all of the shards between them") {
  const auto encoded_parts = [](std::vector<PartSpec> parts) {
    SourceSpec spec = some_spec();
    spec.storage = {};
    spec.parts = std::move(parts);
    return spec.encode();
  };
  const std::string encoded = encoded_parts({{1, "how"}, {1, {}}});
  const SourceSpec spec = SourceSpec::decode(encoded);
  CHECK(spec.encode() == encoded);
  REQUIRE(spec.parts.size() == 2);
  CHECK(spec.parts[0].steps == "how");
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{2}, ~std::uint64_t{0}}) {
    check_refused(encoded_parts({{1, "how"}, {count, {}}}));
  }
}

TEST_CASE("source spec: a reader's data, and how it reads them") {
  const TemporaryFolder folder;
  TestShard shard{folder / "shard"};
  shard.write_records(10, 20);
  ShardSetOptions options;
  options.io = IoMode::pread;
  options.index.use = IndexUse::memory;
  const auto shards = ShardSet::open({shard.path()}, options);
  const SourceSpec spec = SourceSpec::of(Reader(shards, {Verify::header, true}));
  CHECK(spec.planned);
  CHECK(spec.skip_damage);
  CHECK(spec.verify == Verify::header);
  CHECK(spec.io == IoMode::pread);
  CHECK(spec.index_use == IndexUse::memory);
  REQUIRE(spec.shards.size() == 1);
  CHECK(spec.shards[0].path == shard.path());
  CHECK(spec.shards[0].record_count == 10);
  CHECK(spec.shards[0].file_bytes == (*shards)[0].index->facts().file_bytes);
}
