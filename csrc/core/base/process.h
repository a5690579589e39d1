// The process that an object belongs to.
#pragma once

#include <cstdint>
#include <string>

namespace tfrfast {

// Remembers the process that it was made in. A forked child has a copy of every object, but none of
// the threads that work on it, and it shares the open files with its parent.
//
// A count of forks distinguishes a child from its parent. Process numbers would not do: each is 1
// where parent and child are the first processes of their containers.
class HomeProcess {
 public:
  HomeProcess() noexcept;

  // Without a system call. Safe from many threads.
  bool is_this_one() const noexcept;

  // Throws Error closed in a forked child, which must not write to `path`: its bytes would end up
  // in the same file as the parent's.
  void refuse_in_child(const std::string& path) const;

 private:
  std::uint64_t generation_;
  int number_;  // for messages
};

// The system's number of the current process, without a system call.
int process_number() noexcept;

}  // namespace tfrfast
