// The process that an object belongs to.
#pragma once

#include <cstdint>
#include <string>

namespace tfrfast {

// Remembers the process that it was made in. A forked child has a copy of the object it is a part
// of, but none of the threads at work on that one, and it shares the files that are open.
//
// What tells a child from its parent is what fork() itself reports. Their process numbers may be
// equal: each is 1 where both are the first of their container.
class HomeProcess {
 public:
  HomeProcess() noexcept;

  // Without a system call. Safe from many threads.
  bool is_this_one() const noexcept;

  // Throws Error closed in a forked child, where nothing may be written to `path`: what parent and
  // child both write ends up in one file.
  void refuse_in_child(const std::string& path) const;

 private:
  std::uint64_t generation_;
  int number_;  // for people to read
};

}  // namespace tfrfast
