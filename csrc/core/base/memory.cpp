#include "core/base/memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "core/base/platform.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();

std::uint64_t machine_bytes() noexcept {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  std::uint64_t bytes;
  if (pages <= 0 || page_bytes <= 0 ||
      __builtin_mul_overflow(static_cast<std::uint64_t>(pages),
                             static_cast<std::uint64_t>(page_bytes), &bytes)) {
    return kMax;
  }
  return bytes;
}

#if defined(TFRFAST_LINUX)
// Reads the limit in the file `path`. Without a limit the file holds "max" or a huge number.
std::uint64_t limit_in(const char* path) {
  std::uint64_t bytes = 0;
  std::ifstream file(path);
  return file >> bytes && bytes > 0 ? bytes : kMax;
}
#endif

std::uint64_t look_up() noexcept {
  std::uint64_t bytes = std::min(machine_bytes(), kMax);
#if defined(TFRFAST_LINUX)
  try {
    bytes = std::min({bytes, limit_in("/sys/fs/cgroup/memory.max"),
                      limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes")});
  } catch (const std::exception&) {
    // The machine's memory is the only known limit.
  }
#endif
  return bytes;
}

}  // namespace

std::uint64_t max_memory_bytes() noexcept {
  static const std::uint64_t bytes = look_up();
  return bytes;
}

OutOfMemory::OutOfMemory(std::uint64_t wanted_bytes) noexcept {
  std::snprintf(text_, sizeof text_,
                "%llu bytes of memory were asked for; this process may have %llu in all.",
                static_cast<unsigned long long>(wanted_bytes),
                static_cast<unsigned long long>(max_memory_bytes()));
}

}  // namespace tfrfast
