#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/base/parallel.h"
#include "core/base/waiting.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

TEST_CASE("parallel: every number is worked once, whatever the threads") {
  for (const std::size_t count : {0, 1, 2, 3, 100, 5000}) {
    for (const unsigned threads : {0u, 1u, 2u, 7u, 1000u}) {
      std::vector<std::atomic<int>> worked(count);
      parallel_for(count, threads, [&](std::size_t i) { ++worked[i]; });
      for (const auto& times : worked) REQUIRE(times == 1);
    }
  }
}

TEST_CASE("parallel: one thread means the caller's") {
  std::set<std::thread::id> seen;
  parallel_for(100, 1, [&](std::size_t) { seen.insert(std::this_thread::get_id()); });
  CHECK(seen == std::set{std::this_thread::get_id()});
}

TEST_CASE("parallel: other threads do help") {
  std::atomic<int> inside{0};
  // Each call waits for the other call: a single thread would wait forever.
  parallel_for(2, 2, [&](std::size_t) { CHECK(meet(inside, 2)); });
}

TEST_CASE("parallel: of many exceptions the one with the lowest number arrives") {
  for (int round = 0; round < 50; ++round) {
    std::string message;
    try {
      parallel_for(100, 4, [](std::size_t i) {
        if (i >= 3) throw std::runtime_error(std::to_string(i));
      });
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
    REQUIRE(message == "3");
  }
}

TEST_CASE("parallel: what was claimed before a later number failed still runs") {
  std::atomic<bool> last_failed{false};
  const auto work = [&](std::size_t i) {
    if (i == 0) {
      while (!last_failed) std::this_thread::yield();
    } else {
      last_failed = true;
    }
    throw std::runtime_error(std::to_string(i));
  };
  CHECK_THROWS_WITH(parallel_for(2, 2, work), "0");
}

TEST_CASE("parallel: an exception stops what has not begun") {
  std::atomic<int> worked{0};
  CHECK_THROWS(parallel_for(1'000'000, 2, [&](std::size_t) {
    ++worked;
    throw std::runtime_error("enough");
  }));
  CHECK(worked < 1000);
}

TEST_CASE("parallel: an exception does not outlive its handling") {
  // Python's exceptions must be destroyed on the caller's thread, not later on another thread.
  auto alive = std::make_shared<int>(0);
  for (int round = 0; round < 100; ++round) {
    try {
      parallel_for(8, 4, [&](std::size_t) { throw alive; });
    } catch (const std::shared_ptr<int>&) {
    }
    // Exceptions of higher numbers were dropped when the exception of a lower number came.
    REQUIRE(alive.use_count() == 1);
  }
}

TEST_CASE("parallel: may be called within itself") {
  std::atomic<int> worked{0};
  parallel_for(8, 4, [&](std::size_t) {
    parallel_for(8, 4, [&](std::size_t) { parallel_for(8, 4, [&](std::size_t) { ++worked; }); });
  });
  CHECK(worked == 512);
}

TEST_CASE("parallel: many callers share the threads") {
  std::atomic<int> worked{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        parallel_for(20, 4, [&](std::size_t) { ++worked; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(worked == 8 * 50 * 20);
}

TEST_CASE("parallel: the caller is called while it waits, and may give up") {
  std::atomic<bool> release{false};
  const std::thread::id caller = std::this_thread::get_id();
  int waited = 0;
  const auto work = [&](std::size_t) {
    while (std::this_thread::get_id() != caller && !release) std::this_thread::yield();
    // The caller's own share is quick, the helper's waits for the caller.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  std::string message;
  try {
    parallel_for(20, 2, work, [&] {
      ++waited;
      CHECK(std::this_thread::get_id() == caller);
      release = true;
      throw std::runtime_error("gave up");
    });
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  // The helper may have come too late to take a share at all.
  CHECK((waited == 0 || message == "gave up"));
}

TEST_CASE("parallel: a caller that gives up ends every wait, that of number 0, too") {
  struct GivenUp {};
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> helper_waits{false};
  std::atomic<bool> was_ended{true};
  const auto give_up = [&] {
    if (helper_waits) throw GivenUp();
  };
  // The thread that works on number 0 waits, as for a network, unless it is the caller.
  const auto work = [&](std::size_t number) {
    if (number > 0 || std::this_thread::get_id() == caller) return;
    helper_waits = true;
    was_ended = false;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
    try {
      while (std::chrono::steady_clock::now() < end) wait_check()->check();
    } catch (...) {
      was_ended = true;
      throw;
    }
  };
  // Chance decides which thread comes first.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
  while (!helper_waits && std::chrono::steady_clock::now() < end) {
    try {
      parallel_for(9, 8, work, give_up);
    } catch (const GivenUp&) {
    }
  }
  CHECK(helper_waits);
  CHECK(was_ended);
}

TEST_CASE("parallel: a forked child has threads of its own") {
  std::atomic<int> inside{0};
  const auto both = [&](std::size_t) { meet(inside, 2); };
  parallel_for(2, 2, both);
  inside = 0;
  CHECK(run_in_child([&] {
          parallel_for(2, 2, both);
          return inside == 2 ? 0 : 1;
        }) == 0);
}

TEST_CASE("parallel: helpers leave signals to the program and faults to their handlers") {
  sigset_t helper;
  ::sigemptyset(&helper);
  std::atomic<int> inside{0};
  const std::thread::id caller = std::this_thread::get_id();
  parallel_for(2, 2, [&](std::size_t) {
    if (std::this_thread::get_id() != caller) ::pthread_sigmask(SIG_SETMASK, nullptr, &helper);
    meet(inside, 2);
  });
  CHECK(::sigismember(&helper, SIGINT) == 1);
  CHECK(::sigismember(&helper, SIGTERM) == 1);
  CHECK(::sigismember(&helper, SIGBUS) == 0);
  CHECK(::sigismember(&helper, SIGSEGV) == 0);
}

TEST_CASE("usable processors: at least one") {
  CHECK(usable_processors() >= 1);
}
