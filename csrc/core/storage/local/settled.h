// Decides whether a local file's facts are reliable. File times come from a clock that ticks, so a
// file that changes twice within a tick looks the same after both changes.
#pragma once

#include <cstdint>

#include "core/storage/file_facts.h"

namespace tfrfast {

// A file modified less than this ago is not settled: some filesystems keep times in steps of one or
// two seconds.
inline constexpr std::int64_t kRecentNs = 2'000'000'000;

// Whether any later change will change the facts. `now_ns` is the present time, and `tick_ns` the
// last tick of the system's clock for file times. If ctime counts, ctime would be enough: any later
// change gives the file a ctime of at least `tick_ns`. The modification time is judged as well, and
// first, so that only a clock set back by kRecentNs or more can deceive us.
bool is_settled(const FileFacts& facts, std::int64_t now_ns, std::int64_t tick_ns) noexcept;

// Like is_settled(), by the system's clocks. If the file was changed within the current tick, waits
// for the next tick, some milliseconds.
bool await_settled(const FileFacts& facts) noexcept;

}  // namespace tfrfast
