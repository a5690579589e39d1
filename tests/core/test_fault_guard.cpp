#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <vector>

#include "core/storage/fault_guard.h"
#include "core/storage/local/file_descriptor.h"
#include "second_core.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

// A mapping of a file that was truncated later. Touching the mapping is a bus error.
class LostPages {
 public:
  LostPages() {
    const std::string path = folder_ / "pages";
    write_file(path, std::string(kBytes, 'x'));
    const FileDescriptor file(path);
    void* map = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file.get(), 0);
    REQUIRE(map != MAP_FAILED);
    bytes_ = static_cast<const std::uint8_t*>(map);
    write_file(path, "");
  }
  ~LostPages() { ::munmap(const_cast<std::uint8_t*>(bytes_), kBytes); }
  const volatile std::uint8_t* bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kBytes = 1 << 16;
  TemporaryFolder folder_;
  const std::uint8_t* bytes_;
};

bool can_read(const volatile std::uint8_t* byte) {
  return run_guarded([byte] { (void)*byte; });
}

void die_without_core_file() {
  const rlimit none = {0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

// Reports the signal, restores the previous handler and raises the signal again, like Python's
// faulthandler.
struct sigaction before_reporter;
volatile std::sig_atomic_t reports = 0;
void report_and_raise(int signal_number) {
  reports = reports + 1;
  ::sigaction(signal_number, &before_reporter, nullptr);
  ::raise(signal_number);
}
void enable_reporter() {
  struct sigaction action = {};
  action.sa_handler = report_and_raise;
  action.sa_flags = SA_NODEFER;
  struct sigaction before = {};
  ::sigaction(SIGBUS, &action, &before);
  if (before.sa_handler != report_and_raise) before_reporter = before;
}

void set_default() {
  ::signal(SIGBUS, SIG_DFL);  // also removes a sanitizer's handler
}

}  // namespace

TEST_CASE("fault guard: a fault is false, time and again") {
  install_fault_guard();
  const LostPages lost;
  for (int i = 0; i < 1000; ++i) REQUIRE_FALSE(can_read(lost.bytes() + i));
  const std::uint8_t byte = 1;
  CHECK(can_read(&byte));
}

TEST_CASE("fault guard: threads fault at the same time") {
  install_fault_guard();
  const LostPages lost;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < 8; ++number) {
    threads.emplace_back([&, number] {
      const std::uint8_t good = 1;
      for (int i = 0; i < 300; ++i) {
        const bool expected = (i + number) % 3 == 0;
        if (can_read(expected ? &good : lost.bytes() + i) != expected) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("fault guard: a fault that is not ours still kills") {
  const LostPages lost;
  CHECK(run_in_child([&] {
          die_without_core_file();
          install_fault_guard();
          CHECK_FALSE(can_read(lost.bytes()));
          (void)*lost.bytes();
          return 0;
        }) != 0);
}

TEST_CASE("child: a bus error that nobody handles" * doctest::skip()) {
  die_without_core_file();
  set_default();
  install_fault_guard();
  ::raise(SIGBUS);
}

TEST_CASE("fault guard: a bus error that somebody sends kills as ever") {
  CHECK(run_test_case_in_process("child: a bus error that nobody handles") == -SIGBUS);
}

TEST_CASE("child: an ignored bus error" * doctest::skip()) {
  die_without_core_file();
  const LostPages lost;
  ::signal(SIGBUS, SIG_IGN);
  install_fault_guard();
  (void)*lost.bytes();
}

TEST_CASE("fault guard: an ignored fault kills instead of repeating forever") {
  CHECK(run_test_case_in_process("child: an ignored bus error") == -SIGBUS);
}

TEST_CASE("child: two cores, ours second" * doctest::skip()) {
  const LostPages lost;
  second_core::install_fault_guard();
  install_fault_guard();
  for (int i = 0; i < 100; ++i) {
    REQUIRE_FALSE(second_core::can_read(lost.bytes() + i));
    REQUIRE_FALSE(can_read(lost.bytes() + i));
  }
}

TEST_CASE("child: two cores, ours first" * doctest::skip()) {
  const LostPages lost;
  install_fault_guard();
  second_core::install_fault_guard();
  for (int i = 0; i < 100; ++i) {
    REQUIRE_FALSE(can_read(lost.bytes() + i));
    REQUIRE_FALSE(second_core::can_read(lost.bytes() + i));
  }
}

TEST_CASE("fault guard: two copies of the core recover in either order") {
  CHECK(run_test_case_in_process("child: two cores, ours second") == 0);
  CHECK(run_test_case_in_process("child: two cores, ours first") == 0);
}

TEST_CASE("child: a reporter before and after two cores" * doctest::skip()) {
  const LostPages lost;
  set_default();
  enable_reporter();
  second_core::install_fault_guard();
  install_fault_guard();
  REQUIRE_FALSE(can_read(lost.bytes()));
  CHECK(reports == 0);
  for (int i = 1; i <= 10; ++i) {
    enable_reporter();
    REQUIRE_FALSE(second_core::can_read(lost.bytes()));
    CHECK(reports == i);  // the reporter raises the signal again, and the guard recovers
    REQUIRE_FALSE(can_read(lost.bytes()));
    REQUIRE_FALSE(second_core::can_read(lost.bytes()));
  }
}

TEST_CASE("fault guard: a reporting handler may be enabled before and after") {
  CHECK(run_test_case_in_process("child: a reporter before and after two cores") == 0);
}

TEST_CASE("child: a handler that blocks everything" * doctest::skip()) {
  static struct sigaction ours;
  const LostPages lost;
  install_fault_guard();
  struct sigaction action = {};
  action.sa_flags = SA_SIGINFO;
  ::sigfillset(&action.sa_mask);
  action.sa_sigaction = [](int signal_number, siginfo_t* info, void* context) {
    ours.sa_sigaction(signal_number, info, context);
  };
  ::sigaction(SIGBUS, &action, &ours);
  for (int i = 0; i < 10; ++i) REQUIRE_FALSE(can_read(lost.bytes()));
  sigset_t blocked;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  CHECK(::sigismember(&blocked, SIGINT) == 0);
}

TEST_CASE("fault guard: recovers under a handler that blocks every signal") {
  CHECK(run_test_case_in_process("child: a handler that blocks everything") == 0);
}

TEST_CASE("child: ours between a handler that raises again" * doctest::skip()) {
  die_without_core_file();
  set_default();
  enable_reporter();
  install_fault_guard();
  struct sigaction ours = {};
  ::sigaction(SIGBUS, nullptr, &ours);
  before_reporter = ours;
  ::raise(SIGBUS);  // ours, the reporter, ours, the reporter, ...
}

// the sanitizer defers signals from a handler until the handler returns
#if !defined(__SANITIZE_THREAD__)
TEST_CASE("fault guard: handlers in a circle end") {
  CHECK(run_test_case_in_process("child: ours between a handler that raises again") == -SIGBUS);
}
#endif
