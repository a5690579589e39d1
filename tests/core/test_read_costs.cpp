#include "core/storage/read_costs.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "core/storage/storage.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

// A disk that takes 2 ms for each request, and 1 ms for a MiB.
class SlowFile final : public StoredFile {
 public:
  static constexpr StorageTraits kTraits = {};
  static inline std::size_t requests = 0;

  explicit SlowFile(const std::string& path)
      : StoredFile(path, {std::uint64_t{1} << 30, 1, {}, true, {}}, kTraits) {}

  using StoredFile::read;
  void read(std::span<const ReadRange> ranges) const override {
    for (const ReadRange& each : ranges) {
      ++requests;
      std::this_thread::sleep_for(std::chrono::microseconds(2000 + (each.bytes >> 10)));
      std::memset(each.out, 0, each.bytes);
    }
  }
  bool is_cached(std::uint64_t offset) const noexcept override {
    return path() == "seeks://known" || (path() == "seeks://half" && offset % 3 != 0);
  }
};

constexpr Storage kSlow = {
    "seeks",
    SlowFile::kTraits,
    [](const std::string& path, IoMode, const StorageOptions&)
        -> std::shared_ptr<const StoredFile> { return std::make_shared<SlowFile>(path); },
    nullptr,
};

std::shared_ptr<const StoredFile> open_slow(const std::string& path) {
  static const bool once = (add_storage(kSlow), true);
  (void)once;
  SlowFile::requests = 0;
  return StoredFile::open(path);
}

}  // namespace

TEST_CASE("read costs: a read at random is told from a read in order") {
  const auto file = open_slow("seeks://disk");
  const auto begin = std::chrono::steady_clock::now();
  const auto costs = measure_read_costs(*file);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  REQUIRE(costs);
  CHECK(costs->random_s >= 0.002);
  CHECK(costs->in_order_s_per_mib >= 0.003);
  // A busy machine may take longer. The quickest of three measurements has 16 reads or more.
  CHECK(3 * 16 * costs->random_s + costs->in_order_s_per_mib < took.count());
}

TEST_CASE("read costs: a file in memory is neither read nor judged") {
  CHECK(!measure_read_costs(*open_slow("seeks://known")));
  CHECK(!measure_read_costs(*open_slow("seeks://half")));
  CHECK(SlowFile::requests == 0);
  const TemporaryFolder folder;
  write_file(folder / "written", std::string(33 << 20, 'x'));
  CHECK(!measure_read_costs(*StoredFile::open(folder / "written")));
}
