#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "core/base/foreign_call.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

std::atomic<bool> destroyed{false};

struct Held {
  ~Held() { destroyed = true; }
};

// Unwinding this function would end the process.
void call_and_hold() noexcept {
  const Held held;
  call_foreign([] { ::pthread_exit(nullptr); });
}

void handle_and_call() noexcept {
  try {
    throw 7;
  } catch (int) {
    call_and_hold();
  }
}

struct CallsAtItsEnd {
  ~CallsAtItsEnd() { call_and_hold(); }
};

void throw_and_call() {
  try {
    const CallsAtItsEnd last;
    throw 7;
  } catch (int) {
  }
}

// Whether the thread has blocked its signals, as it does before it waits for the end.
bool waits_for_the_end(long thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("SigBlk:")) return line.find_first_of("123456789abcdef", 7) != line.npos;
  }
  return false;
}

}  // namespace

TEST_CASE("foreign call: it returns what is returned and throws what is thrown") {
  CHECK(call_foreign([] { return 7; }) == 7);
  CHECK_THROWS_AS(call_foreign([] { throw 7; }), int);
}

TEST_CASE("foreign call: a thread that is ended there waits, and nothing is unwound") {
  for (void (*const work)() :
       {+[] { call_and_hold(); }, +[] { handle_and_call(); }, &throw_and_call}) {
    CHECK(run_in_child([&] {
            std::atomic<long> thread{0};
            std::thread([&] {
              thread = ::syscall(SYS_gettid);
              work();
            }).detach();
            while (thread == 0 || !waits_for_the_end(thread)) std::this_thread::yield();
            return destroyed ? 1 : 0;
          }) == 0);
  }
}
