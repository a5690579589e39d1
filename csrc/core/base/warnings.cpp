#include "core/base/warnings.h"

#include <mutex>
#include <unordered_set>
#include <utility>

#include "core/base/fork.h"
#include "core/base/printable.h"

namespace tfrfast {
namespace {

struct Warnings {
  Warnings() {
    constexpr auto its_mutex = []() -> std::mutex& { return instance().mutex; };
    make_fork_wait_for<its_mutex>();
  }
  static Warnings& instance() {
    static auto* const warnings = new Warnings;  // outlives every static that may still warn
    return *warnings;
  }

  std::mutex mutex;  // guards the other members
  std::unordered_set<std::string> keys;
  std::vector<std::string> not_taken;
};

}  // namespace

void warn_once(const std::string& key, const std::string& text) {
  Warnings& warnings = Warnings::instance();
  const std::lock_guard lock(warnings.mutex);
  if (warnings.keys.insert(key).second) warnings.not_taken.push_back(printable(text));
}

std::vector<std::string> take_warnings() {
  Warnings& warnings = Warnings::instance();
  const std::lock_guard lock(warnings.mutex);
  return std::exchange(warnings.not_taken, {});
}

}  // namespace tfrfast
