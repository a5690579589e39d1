// Whether a local file's facts can be relied on. File times come from a clock that ticks, so a file
// that changes twice within a tick looks the same after both changes.
#pragma once

#include <cstdint>

#include "core/storage/file_facts.h"

namespace tfrfast {

// A file that was modified less than this ago is not settled: some filesystems keep times in steps
// of one or two seconds.
inline constexpr std::int64_t kRecentNs = 2'000'000'000;

// Whether any change from now on will change the facts. `now_ns` is the time, and `tick_ns` the
// time at the last tick of the system's clock for files. Where ctime counts, it would be enough:
// any change from now on gives the file a ctime of at least `tick_ns`. The modification time is
// judged as well, and first, so that only a clock that is set back by kRecentNs or more can deceive
// us.
bool is_settled(const FileFacts& facts, std::int64_t now_ns, std::int64_t tick_ns) noexcept;

// The same by the system's clocks. If the file was changed within the current tick, waits for the
// next one, some milliseconds.
bool await_settled(const FileFacts& facts) noexcept;

}  // namespace tfrfast
