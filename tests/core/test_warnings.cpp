#include <doctest/doctest.h>

#include "core/base/warnings.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

TEST_CASE("warnings: each key warns once, and each warning is taken once") {
  take_warnings();
  warn_once("test: a", "first");
  warn_once("test: b", "second");
  warn_once("test: a", "third");
  CHECK(take_warnings() == std::vector<std::string>{"first", "second"});
  CHECK(take_warnings().empty());
  warn_once("test: a", "fourth");
  CHECK(take_warnings().empty());
}
