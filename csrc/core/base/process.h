// Identifies the process that made an object.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace tfrfast {

// Remembers the process that constructed the object. A forked child has a copy of every object, but
// none of the threads that work on the object, and shares open files with its parent.
//
// A count of forks distinguishes a child from its parent. Process numbers do not: parent and child
// may both be process 1 of their containers.
class HomeProcess {
 public:
  HomeProcess() noexcept;

  // Makes no system call. Safe from many threads.
  bool is_this_one() const noexcept;

  // Throws Error closed in a forked child. A child must not write to `path`: its bytes would be
  // mixed with the parent's in one file.
  void refuse_in_child(const std::string& path) const;

 private:
  std::uint64_t generation_;
  int number_;  // the process number, for messages
};

// Returns the object of this process, made at the first call. It is never destroyed: its threads
// may run until the process ends. A forked child makes an object of its own, and leaves the
// parent's alone, because a thread of the parent may have held its lock.
template <class T>
T& one_per_process() {
  struct Made {
    T object;
    HomeProcess home;
  };
  static constinit std::atomic<Made*> current{nullptr};
  Made* made = current.load(std::memory_order_acquire);
  while (made == nullptr || !made->home.is_this_one()) {
    auto another = std::make_unique<Made>();
    if (current.compare_exchange_strong(made, another.get(), std::memory_order_acq_rel)) {
      made = another.release();
    }
  }
  return made->object;
}

// getpid(), without a system call.
int process_number() noexcept;

}  // namespace tfrfast
