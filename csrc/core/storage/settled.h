// Whether a local file's facts can be relied on: times come from a clock that ticks, so what is
// changed twice within a tick looks the same afterwards.
#pragma once

#include <cstdint>

#include "core/storage/file_facts.h"

namespace tfrfast {

// A file that was modified less than this before is not settled: some filesystems keep whole
// seconds, or two of them.
inline constexpr std::int64_t kRecentNs = 2'000'000'000;

// Whether no change from now on can leave the facts what they are. `now_ns` is the time, `tick_ns`
// the same as the system's clock for files last ticked. Where ctime counts, it alone would do:
// whatever changes the file from now on gives it a ctime of at least `tick_ns`. The time of
// modification is judged all the same, and first, so that a clock that was set back has to be set
// back by as much.
bool is_settled(const FileFacts& facts, std::int64_t now_ns, std::int64_t tick_ns) noexcept;

// The same by the clocks there are. Waits for the next tick, some milliseconds, if the file was
// changed in this one.
bool await_settled(const FileFacts& facts) noexcept;

}  // namespace tfrfast
