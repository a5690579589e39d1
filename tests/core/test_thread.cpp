#include <doctest/doctest.h>
#include <pthread.h>

#include <csignal>
#include <set>

#include "core/base/thread.h"

using namespace tfrfast;

namespace {

const std::set<int> kFaults = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};

// Some signals cannot be blocked, or are reserved by the C library. They are the same on every
// thread.
std::set<int> blocked_signals() {
  sigset_t blocked;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  std::set<int> numbers;
  for (int number = 1; number < NSIG; ++number) {
    if (::sigismember(&blocked, number) == 1) numbers.insert(number);
  }
  return numbers;
}

}  // namespace

TEST_CASE("thread: it leaves signals to the program and faults to their handlers") {
  const std::set<int> before = blocked_signals();
  std::set<int> blocked;
  start_thread([&] { blocked = blocked_signals(); }).join();
  for (const int fault : kFaults) CHECK_FALSE(blocked.contains(fault));
  for (const int sent : {SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGUSR1, SIGCHLD, SIGPIPE, SIGPROF}) {
    CHECK(blocked.contains(sent));
  }
  CHECK(blocked_signals() == before);
}

TEST_CASE("thread: any thread can come to leave signals to others") {
  std::set<int> by_itself;
  std::thread([&] {
    leave_signals_to_others();
    by_itself = blocked_signals();
  }).join();
  std::set<int> from_the_start;
  start_thread([&] { from_the_start = blocked_signals(); }).join();
  CHECK(by_itself == from_the_start);
}
