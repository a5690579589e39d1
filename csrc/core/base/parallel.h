// Fork and join on a few shared threads.
#pragma once

#include <cstddef>
#include <functional>

namespace tfrfast {

// Processors this process may run on: its affinity mask and its cgroup's quota, at least 1.
unsigned usable_processors();

// Calls work(0) ... work(count - 1), on the calling thread and up to `threads - 1` others, in any
// order; returns when all are done. After an exception no further work is begun, and the exception
// with the lowest number is rethrown. `while_waiting`, if given, is called on the calling thread
// about ten times a second once it has no more work of its own. It may throw, too.
//
// The threads start when they are first needed and live as long as the process. A forked child
// starts its own. May be called from many threads, and from within `work`.
void parallel_for(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work,
                  const std::function<void()>& while_waiting = nullptr);

}  // namespace tfrfast
