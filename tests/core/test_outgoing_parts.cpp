#include <doctest/doctest.h>

#include <cerrno>
#include <string>
#include <thread>

#include "core/base/error.h"
#include "core/base/waiting.h"
#include "core/storage/remote/outgoing_parts.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

struct NeverInterrupted final : WaitCheck {
  void check() override {}
};

struct Fixture {
  TemporaryFolder folder;
  std::string path = folder / "object";
  std::shared_ptr<OutgoingParts> parts = std::make_shared<OutgoingParts>(4, 3, 1);

  std::string take(std::uint64_t number, bool is_last) {
    const auto part = parts->take(0);
    REQUIRE(part);
    CHECK(part->object == path);
    CHECK(part->number == number);
    CHECK(part->is_last == is_last);
    return read_file(part->path);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "outgoing parts: an object is cut into parts of one size") {
  const auto object = parts->publish(path);
  object->append("abc", 3);
  CHECK_FALSE(parts->take(0));
  // a full part waits for a further byte, because it may be the last part
  object->append("defgh", 5);
  CHECK(take(0, false) == "abcd");
  CHECK_FALSE(parts->take(0));
  object->park();
  object->append("ij", 2);
  CHECK(take(1, false) == "efgh");
  object->commit(false);
  CHECK(take(2, true) == "ij");
}

TEST_CASE_FIXTURE(Fixture, "outgoing parts: an object of one part is a file of its name") {
  for (const std::string bytes : {"", "abcd"}) {
    const auto object = parts->publish(path);
    object->append(bytes.data(), bytes.size());
    object->commit(false);
    const auto part = parts->take(0);
    REQUIRE(part);
    CHECK(part->path == path);
    CHECK(part->is_last);
    CHECK(read_file(path) == bytes);
  }
}

TEST_CASE_FIXTURE(Fixture, "outgoing parts: what is not committed leaves nothing") {
  parts->publish(path)->append("abc", 3);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE_FIXTURE(Fixture, "outgoing parts: writers wait while too many parts do") {
  std::string taken;
  std::thread sender([&] {
    for (std::uint64_t number = 0; number < 2; ++number) {
      const auto part = parts->take(60'000);
      if (part) taken += read_file(part->path);
    }
  });
  const NeverInterrupted check;
  const auto object = parts->publish(path);
  object->append("0123456789", 10);
  sender.join();
  CHECK(taken == "01234567");
}

TEST_CASE_FIXTURE(Fixture, "outgoing parts: a failure to send ends those who write") {
  const NeverInterrupted check;
  const auto object = parts->publish(path);
  object->append("0123456", 7);
  std::thread sender([&] { parts->fail("The network is gone.", ENETDOWN); });
  const Error error = error_of([&] { object->append("89", 2); });
  sender.join();
  CHECK(error.message() == "The network is gone.");
  CHECK(error.system_error() == ENETDOWN);
}

TEST_CASE_FIXTURE(Fixture, "outgoing parts: an object has so many parts and no more") {
  const auto object = parts->publish(path);
  object->append("0123456789ab", 12);
  CHECK(error_of([&] { object->append("c", 1); }).system_error() == EFBIG);
}
