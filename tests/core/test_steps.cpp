#include <doctest/doctest.h>

#include <fstream>
#include <memory>
#include <string>

#include "core/read/source_spec.h"
#include "core/steps/step_choice.h"
#include "core/steps/step_file.h"
#include "core/steps/step_part.h"
#include "core/steps/step_reader.h"
#include "core/steps/step_spec.h"
#include "core/steps/step_tables.h"
#include "shard_fixture.h"
#include "wire_examples.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

// An Example of one-byte integers and a name for the episode.
std::string episode(std::string_view values) {
  return example({entry("s/n", field(3, field(1, values))), entry("id", strings({"me"}))});
}

const StepAxis kAxis{{"s/"}, {}};

struct Fixture {
  TemporaryFolder folder;
  TestShard shard{folder / "shard"};

  StepPart part() {
    StepPartMaker maker(StepLayout{kAxis, {}});
    for (const char* values : {"\1\2\3", "\4\5"}) {
      shard.write_record(episode(values));
      maker.add(wire_bytes(episode(values)), [] { return std::string("A record"); });
    }
    return maker.finish();
  }

  std::shared_ptr<const StepReader> open(const StepPart& part, StepOptions options = {}) {
    auto reader = open_reader({shard.path()});
    StepTables tables(kAxis);
    tables.append(StepPart::decode(part.encode()));
    const StepFileBytes made = std::move(tables).finish(reader->shards().fingerprint(), 7);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(made.size()));
    made.read(0, bytes);
    const std::string path = folder / "made.steps";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return std::make_shared<const StepReader>(reader, StepFile::open(path, reader->shards(), 7),
                                              std::move(options));
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "steps: whoever has a description opens the same steps") {
  StepOptions options;
  options.names["s/n"] = "s/m";
  options.windows["s/m"] = {1, 2, 1, StepWindow::Pad::zeros};
  options.laters["goal"] = {"s/m", 9, 1, 3};
  options.absent["s/x"] = "nothing";
  options.columns = {"goal", "id", "s/m"};
  options.chosen = "\x1d";
  const auto steps = open(part(), options);
  const SourceSpec spec = SourceSpec::decode(SourceSpec::of(*steps).encode());
  REQUIRE(spec.parts.size() == 1);
  const StepSpec described = StepSpec::decode(spec.parts[0].steps);
  CHECK(described.encode() == spec.parts[0].steps);
  const auto again = described.open(open_reader({shard.path()}));
  CHECK(again->fingerprint() == steps->fingerprint());
  CHECK(again->record_count() == 4);
  CHECK(strings_of(*again->read_one(3)) == strings_of(*steps->read_one(3)));
  const StepSpec none{"", 0, {}};
  CHECK(error_of([&] { StepSpec::decode(none.encode() + '\0'); }).kind() == ErrorKind::invalid);
}

TEST_CASE_FIXTURE(Fixture, "steps: parts that do not fit are refused") {
  StepPart one = part();
  one.features[0].crcs.pop_back();
  CHECK(error_of([&] { StepPart::decode(one.encode()); }).kind() == ErrorKind::invalid);
  CHECK(error_of([&] { StepPart::decode("nonsense"); }).kind() == ErrorKind::invalid);
  StepTables tables(kAxis);
  StepPart other = part();
  tables.append(other);
  other.features[0].values = 2;
  CHECK(error_of([&] { tables.append(other); }).kind() == ErrorKind::feature);
}

TEST_CASE("steps: chosen ones are found by place, and counted below any number") {
  for (const std::uint64_t all : {0, 1, 64, 511, 512, 513, 3000}) {
    std::string bits(static_cast<std::size_t>((all + 7) / 8), '\0');
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t step = 0; step < all; ++step) {
      if ((step * step + step / 700) % 3 != 1) continue;
      bits[static_cast<std::size_t>(step / 8)] |= static_cast<char>(1 << step % 8);
      numbers.push_back(step);
    }
    const StepChoice choice(bits, all);
    REQUIRE(choice.count() == numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(choice.number(i) == numbers[i]);
    for (std::uint64_t end = 0, below = 0; end <= all; ++end) {
      CHECK(choice.count_below(end) == below);
      if (below < numbers.size() && numbers[below] == end) ++below;
    }
  }
  CHECK(error_of([] { StepChoice("\x10", 4); }).kind() == ErrorKind::invalid);
  CHECK(error_of([] { StepChoice("", 1); }).kind() == ErrorKind::invalid);
}

TEST_CASE("steps: a later one is the same for ever") {
  const LaterStep later{"", 42, 1, 1 << 30};
  const std::uint64_t numbers[] = {0, 1, 2, std::uint64_t{1} << 40};
  const std::uint32_t expected[] = {96, 71, 52, 6};
  for (int i = 0; i < 4; ++i) CHECK(later.draw(numbers[i], 3, 103).step == expected[i]);
  CHECK(later.draw(0, 102, 103).step == 102);
  CHECK_FALSE(later.draw(0, 102, 103).is_real);
}
