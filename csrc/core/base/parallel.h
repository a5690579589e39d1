// Forks work onto a few shared threads, and joins.
#pragma once

#include <cstddef>
#include <functional>

namespace tfrfast {

// The processors of this process: its affinity mask, limited by its cgroup's quota. At least 1.
unsigned usable_processors();

// Calls work(0) ... work(count - 1), on the calling thread and up to `threads - 1` others, in any
// order. Returns when all calls have returned. After an exception no further work is started, and
// the exception of the lowest number is rethrown. Once the calling thread has no more work of its
// own, it calls `while_waiting`, if given, about ten times a second. `while_waiting` may throw,
// too.
//
// The threads are started on first use and live as long as the process. A forked child starts its
// own threads. Many threads may call this, and so may `work`.
void parallel_for(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work,
                  const std::function<void()>& while_waiting = nullptr);

}  // namespace tfrfast
