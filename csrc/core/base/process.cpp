#include "core/base/process.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include "core/base/error.h"

namespace tfrfast {
namespace {

// The number of forks between the process that loaded this library and the current process. Every
// ancestor has a smaller number, and a process can hold objects only of its ancestors.
std::atomic<std::uint64_t> generation{0};
// getpid() is a system call, too slow to make for every written record.
std::atomic<int> current_number{0};

[[maybe_unused]] const int kWatching = [] {
  current_number = ::getpid();
  return ::pthread_atfork(nullptr, nullptr, [] {
    generation.fetch_add(1, std::memory_order_relaxed);
    current_number = ::getpid();
  });
}();

}  // namespace

int process_number() noexcept {
  return current_number.load(std::memory_order_relaxed);
}

HomeProcess::HomeProcess() noexcept
    : generation_(generation.load(std::memory_order_relaxed)),
      number_(current_number.load(std::memory_order_relaxed)) {}

bool HomeProcess::is_this_one() const noexcept {
  return generation_ == generation.load(std::memory_order_relaxed);
}

void HomeProcess::refuse_in_child(const std::string& path) const {
  if (is_this_one()) return;
  throw Error(
      ErrorKind::closed,
      "The writer of '" + path + "' was made in process " + std::to_string(number_) +
          ", and this is process " + std::to_string(current_number) +
          ", which was forked from it. Make a writer in each process, each with its own file "
          "name.",
      {path, {}, {}});
}

}  // namespace tfrfast
