#include <doctest/doctest.h>

#include "core/index/text_index.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

struct Fixture {
  TemporaryFolder folder;
  TestShard shard{folder / "shard"};
  std::string path = folder / "shard.idx";

  Fixture() { shard.write_record("one").write_record("").write_record(payload(100)); }

  std::shared_ptr<const ShardIndex> import(const std::string& text) const {
    write_file(path, text);
    return import_text_index(path, StoredFile::open(shard.path()));
  }
  std::string refusal_of(const std::string& text) const {
    const Error error = error_of([&] { import(text); });
    CHECK(error.kind() == ErrorKind::invalid);
    CHECK(error.place().path == path);
    CHECK(holds(error.message(), "Text index '" + path + "', line "));
    CHECK(holds(error.message(), "`tfrfast index`"));
    return error.message();
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "text index: blanks, blank lines and line ends of all kinds") {
  for (const std::string text : {"0 19\n19 16\n35 116", "0\t19\r\n19  16 \r\n\r\n35 116\r\n",
                                 "\n\n 0 19\n19 16\n\n35 116\n\n"}) {
    CHECK(import(text)->record_count() == 3);
  }
}

TEST_CASE_FIXTURE(Fixture, "text index: an empty one is right for an empty shard only") {
  CHECK(holds(refusal_of(""), "ends at byte 0, but"));
  shard = TestShard(shard.path());
  CHECK(import("")->record_count() == 0);
}

TEST_CASE_FIXTURE(Fixture, "text index: nonsense is refused with its line") {
  for (const std::string line : {"x 16", "19", "19 16 7", "-19 16", "19,16", "0x13 16", "19 16x",
                                 "99999999999999999999 16"}) {
    CAPTURE(line);
    CHECK(holds(refusal_of("0 19\n" + line + "\n35 116\n"),
                "line 2: expected an offset and a length, in decimal."));
  }
  CHECK(holds(refusal_of(std::string("0 19\0\n", 6)), "line 1"));
}

TEST_CASE_FIXTURE(Fixture, "text index: frames that the shard does not have are refused") {
  CHECK(holds(refusal_of("0 19\n20 16\n"),
              "line 2: the record should begin at byte 19, where the "
              "one before it ends, not at 20."));
  CHECK(holds(refusal_of("0 19\n19 15\n"), "can have 15 bytes"));
  CHECK(holds(refusal_of("0 152\n"), "can have 152 bytes"));
  CHECK(holds(refusal_of("0 18446744073709551615\n"), "can have 18446744073709551615 bytes"));
  CHECK(holds(refusal_of("0 19\n19 16\n"), "ends at byte 35, but '" + shard.path() + "' has 151"));
  CHECK(holds(refusal_of("0 35\n35 116\n"), "has no such records"));
}
