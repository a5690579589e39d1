// Fork and join on a few shared threads.
#pragma once

#include <cstddef>
#include <functional>

namespace tfrfast {

// Processors this process may run on: its affinity mask and its cgroup's quota, at least 1.
unsigned usable_processors();

// Calls work(0) ... work(count - 1), on the calling thread and up to `threads - 1` others, in any
// order; returns when all are done. An exception stops what has not begun; the one with the lowest
// number is rethrown. `while_waiting`, if given, is called on the calling thread about ten times a
// second once it has no more work of its own; it may throw, too.
//
// The threads start when first needed, live as long as the process, and are begun anew in a forked
// child. May be called from many threads, and from within `work`.
void parallel_for(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work,
                  const std::function<void()>& while_waiting = nullptr);

}  // namespace tfrfast
