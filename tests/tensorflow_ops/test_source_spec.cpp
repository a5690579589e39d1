#include <doctest/doctest.h>

#include <limits>

#include "../core/shard_fixture.h"
#include "core/base/encoding.h"
#include "tensorflow/source_spec.h"

using namespace tfrfast;
using namespace tfrfast::tensorflow;
using namespace tfrfast::testing;

namespace {

SourceSpec example_spec() {
  SourceSpec spec;
  spec.planned = true;
  spec.zero_copy = true;
  spec.compression = Compression::gzip;
  spec.shards = {{"/data/a b.tfrecord", 100, 3},
                 {"", 0, 0},
                 {std::string("null\0inside", 11), std::numeric_limits<std::uint64_t>::max(), 7}};
  return spec;
}

void check_refused(const std::string& text) {
  const Error error = error_of([&] { decode_source(text); });
  CHECK(error.kind() == ErrorKind::invalid);
  CHECK(holds(error.message(), "Make the source, or the graph that holds it, again."));
}

}  // namespace

TEST_CASE("source spec: what was encoded is decoded") {
  const SourceSpec spec = example_spec();
  const SourceSpec decoded = decode_source(spec.encode());
  CHECK(decoded.planned);
  CHECK_FALSE(decoded.skip_damage);
  CHECK(decoded.zero_copy);
  CHECK(decoded.compression == Compression::gzip);
  REQUIRE(decoded.shards.size() == spec.shards.size());
  for (std::size_t i = 0; i < spec.shards.size(); ++i) {
    CHECK(decoded.shards[i].path == spec.shards[i].path);
    CHECK(decoded.shards[i].file_bytes == spec.shards[i].file_bytes);
    CHECK(decoded.shards[i].record_count == spec.shards[i].record_count);
  }
}

TEST_CASE("source spec: each flag is decoded alone") {
  for (int flag = 0; flag < 3; ++flag) {
    CAPTURE(flag);
    SourceSpec spec;
    (flag == 0 ? spec.planned : flag == 1 ? spec.skip_damage : spec.zero_copy) = true;
    const SourceSpec decoded = decode_source(spec.encode());
    CHECK(decoded.planned == (flag == 0));
    CHECK(decoded.skip_damage == (flag == 1));
    CHECK(decoded.zero_copy == (flag == 2));
  }
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

TEST_CASE("source spec: foreign text is refused") {
  check_refused("");
  check_refused("/data/a.tfrecord");
  check_refused(Encoder({"plan", "tfPL"}).finish());
  check_refused(Encoder({"source", "tfSR", 2}).finish());
}

TEST_CASE("source spec: text that was cut, lengthened or changed is refused") {
  const std::string text = example_spec().encode();
  for (std::size_t i = 0; i < text.size(); ++i) {
    CAPTURE(i);
    check_refused(text.substr(0, i));
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    check_refused(changed);
  }
  check_refused(text + '\0');

  Encoder longer({"source", "tfSR"});  // its fingerprint is right
  for (int i = 0; i < 6; ++i) longer.number(0);
  check_refused(longer.finish());
}

TEST_CASE("source spec: a count of shards that the text cannot hold is refused") {
  Encoder encoder({"source", "tfSR"});
  for (int i = 0; i < 4; ++i) encoder.number(0);
  encoder.number(std::uint64_t{1} << 60);
  check_refused(encoder.finish());
}

TEST_CASE("source spec: sources that differ have hashes that differ") {
  SourceSpec spec = example_spec();
  const std::uint64_t hash = source_hash(spec.encode());
  CHECK(source_hash(spec.encode()) == hash);
  spec.shards[0].record_count = 4;
  CHECK(source_hash(spec.encode()) != hash);
}
