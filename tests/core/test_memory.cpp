#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "core/base/memory.h"
#include "core/base/pool.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

// An index of `record_count` records, none of which is ever read.
std::shared_ptr<const ShardIndex> index_of_count(std::uint64_t record_count) {
  static const std::uint8_t residuals[PackedOffsets::kResidualPadding] = {};
  return std::make_shared<const ShardIndex>(ShardFacts{}, IndexSource{nullptr, "claims"},
                                            PackedOffsets(nullptr, residuals, record_count + 1),
                                            std::vector<std::uint32_t>(), std::vector<Damage>());
}

}  // namespace

TEST_CASE("memory: sums stay at the largest number") {
  CHECK(add_or_max(2, 3) == 5);
  CHECK(add_or_max(kMax - 3, 3) == kMax);
  CHECK(add_or_max(kMax - 2, 3) == kMax);
  CHECK(add_or_max(std::uint64_t{1} << 63, std::uint64_t{1} << 63) == kMax);
}

TEST_CASE("memory: what no memory can hold is refused before it is tried") {
  const auto refusal = [](const auto& action) {
    try {
      action();
    } catch (const OutOfMemory& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(bytes_for<std::uint64_t>(1000) == 8000);
  CHECK(max_memory_bytes() > std::uint64_t{64} << 20);
  // The product wraps to 8.
  const std::size_t wraps = (std::size_t{1} << 61) + 1;
  CHECK(holds(refusal([&] { bytes_for<std::uint64_t>(wraps); }), std::to_string(kMax)));
  const auto beyond = static_cast<std::size_t>(max_memory_bytes() + 1);
  CHECK(holds(refusal([&] { PooledBuffer{beyond}; }), std::to_string(beyond)));
  CHECK(holds(refusal([&] { PooledBuffer{std::size_t{1} << 63}; }), "bytes of memory"));
  CHECK(!refusal([&] { RecordBatch{std::size_t{1} << 61}; }).empty());
}

TEST_CASE("memory: more records than can be numbered are refused") {
  TemporaryFolder folder;
  TestShard shard(folder / "shard");
  const auto file = StoredFile::open(shard.path());
  const auto max_count = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const IndexedShard half{file, index_of_count(max_count / 2), false, {}};
  CHECK(ShardSet({half, half}).record_count() == max_count - 1);
  const Error error = error_of([&] { ShardSet({half, half, half}); });
  CHECK(error.kind() == ErrorKind::invalid);
  CHECK(holds(error.message(), "more than can be numbered"));
}
