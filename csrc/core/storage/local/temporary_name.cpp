#include "core/storage/local/temporary_name.h"

#include <dirent.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <exception>
#include <fstream>
#include <mutex>
#include <set>
#include <string_view>

#include "core/base/platform.h"

namespace tfrfast {
namespace {

constexpr std::string_view kPrefix = ".tmp-";

#if defined(TFRFAST_LINUX)

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

// Names the scope in which process numbers are unique: a container, during a boot of a kernel.
// Empty if unknown.
std::string this_machine() {
  static const auto* const boot = new std::string(boot_id());  // outlives every static
  char container[64];  // read each time, because a forked child may be in another container
  const ssize_t count = ::readlink("/proc/self/ns/pid", container, sizeof container);
  if (boot->empty() || count <= 0) return "";
  // As in "pid:[4026531836]".
  std::string name = *boot + "-";
  for (const char character : std::string_view(container, static_cast<std::size_t>(count))) {
    if (character >= '0' && character <= '9') name += character;
  }
  return name;
}

#else

// Without /proc, the scope of process numbers is unknown.
std::string this_machine() {
  return "";
}

#endif

bool is_abandoned(std::string_view name, const std::string& prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  pid_t process = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process);
  if (error != std::errc() || process <= 0 || end == name.data() + name.size() || *end != '-') {
    return false;
  }
  return ::kill(process, 0) != 0 && errno == ESRCH;
}

// Whether this is the process's first call for `folder`.
bool is_new(const std::string& folder) {
  static std::mutex mutex;
  static auto* const seen = new std::set<std::string>;  // outlives every static
  // The answer is not worth a wait, and in a forked child the wait might never end.
  const std::unique_lock lock(mutex, std::try_to_lock);
  return lock.owns_lock() && seen->insert(folder).second;
}

}  // namespace

std::string temporary_name(const std::string& folder) {
  static std::atomic<unsigned> serial{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  std::string name = folder + "/" + std::string(kPrefix);
  if (const std::string machine = this_machine(); !machine.empty()) name += machine + "-";
  return name + std::to_string(::getpid()) + "-" + std::to_string(serial.fetch_add(1)) + "-" +
         std::to_string(now);
}

void remove_abandoned(const std::string& folder) noexcept {
  try {
    if (!is_new(folder)) return;
    const std::string machine = this_machine();
    if (machine.empty()) return;
    const std::string prefix = std::string(kPrefix) + machine + "-";
    DIR* const listing = ::opendir(folder.c_str());
    if (listing == nullptr) return;
    while (const dirent* entry = ::readdir(listing)) {
      if (is_abandoned(entry->d_name, prefix)) ::unlinkat(::dirfd(listing), entry->d_name, 0);
    }
    ::closedir(listing);
  } catch (const std::exception&) {
    // The leftovers do no harm.
  }
}

}  // namespace tfrfast
