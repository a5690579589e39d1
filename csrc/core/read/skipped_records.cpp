#include "core/read/skipped_records.h"

#include <mutex>

#include "core/base/fork.h"

namespace tfrfast {
namespace {

// Guards every reader's list. A single lock lets fork() wait for it.
constinit std::mutex every_list;
std::mutex& skipped_mutex() {
  return every_list;
}
[[maybe_unused]] const int kGuarded = make_fork_wait_for<skipped_mutex>();

}  // namespace

void SkippedRecords::add(const std::string& path, std::uint64_t begin, std::uint64_t end) {
  const std::lock_guard lock(skipped_mutex());
  by_place_.try_emplace({path, begin}, SkippedBytes{path, begin, end, 1});
}

void SkippedRecords::append_to(std::vector<SkippedBytes>& all) const {
  const std::lock_guard lock(skipped_mutex());
  for (const auto& [place, skipped] : by_place_) all.push_back(skipped);
}

}  // namespace tfrfast
