#include "core/base/process.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include "core/base/error.h"

namespace tfrfast {
namespace {

// getpid() is a system call, too slow for every record that is written. Set when this is loaded.
std::atomic<int> this_process{0};
[[maybe_unused]] const int kWatching = [] {
  this_process = ::getpid();
  return ::pthread_atfork(nullptr, nullptr, [] { this_process = ::getpid(); });
}();

}  // namespace

HomeProcess::HomeProcess() : number_(this_process.load(std::memory_order_relaxed)) {}

bool HomeProcess::is_this_one() const noexcept {
  return number_ == this_process.load(std::memory_order_relaxed);
}

void HomeProcess::refuse_in_child(const std::string& path) const {
  if (is_this_one()) return;
  throw Error(ErrorKind::closed,
              "The writer of '" + path + "' was made in process " + std::to_string(number_) +
                  ", and this is process " + std::to_string(this_process) +
                  ", which was forked from it. Make one writer in each process, for a name of its "
                  "own.",
              {path, {}, {}});
}

}  // namespace tfrfast
