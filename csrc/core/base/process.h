// Identifies the process that made an object.
#pragma once

#include <cstdint>
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

// getpid(), without a system call.
int process_number() noexcept;

}  // namespace tfrfast
