#include <doctest/doctest.h>
#include <unistd.h>

#include <string>

#include "core/base/error.h"
#include "core/base/process.h"
#include "failing_calls.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

TEST_CASE("home process: children, and their children, are told from it") {
  const HomeProcess home;
  CHECK(home.is_this_one());
  CHECK_NOTHROW(home.refuse_in_child("shard"));
  CHECK(run_in_child([&] {
          const HomeProcess of_child;
          if (home.is_this_one() || !of_child.is_this_one()) return 1;
          return run_in_child([&] { return home.is_this_one() || of_child.is_this_one() ? 2 : 0; });
        }) == 0);
  CHECK(home.is_this_one());
}

TEST_CASE("home process: a child is told from it even if it has the same number") {
  const SameProcessNumber same;
  const HomeProcess home;
  const pid_t parent = ::getpid();
  CHECK(run_in_child([&] {
          if (::getpid() != parent) return 1;
          return home.is_this_one() ? 2 : 0;
        }) == 0);
}

TEST_CASE("home process: a child is told whose file it must not touch") {
  const HomeProcess home;
  const std::string parent = std::to_string(::getpid());
  CHECK(run_in_child([&] {
          const std::string wanted = "The writer of 'shard' was made in process " + parent +
                                     ", and this is process " + std::to_string(::getpid()) + ",";
          try {
            home.refuse_in_child("shard");
          } catch (const Error& error) {
            const bool is_right = error.kind() == ErrorKind::closed &&
                                  error.place().path == "shard" &&
                                  error.message().starts_with(wanted);
            return is_right ? 0 : 1;
          }
          return 2;
        }) == 0);
}
