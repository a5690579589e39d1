#include "core/storage/users.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

namespace tfrfast {

std::uint32_t this_user() noexcept {
  return ::geteuid();
}

bool is_trusted_user(std::uint32_t number) noexcept {
  return number == this_user() || number == 0;
}

std::string name_of_user(std::uint32_t number) {
  passwd entry;
  passwd* user = nullptr;
  char text[4096];
  ::getpwuid_r(number, &entry, text, sizeof text, &user);
  return "user " + std::to_string(number) +
         (user == nullptr ? "" : std::string(" (") + user->pw_name + ")");
}

std::string home_folder() {
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return home;
  passwd entry;
  passwd* user = nullptr;
  char text[4096];
  ::getpwuid_r(::getuid(), &entry, text, sizeof text, &user);
  return user == nullptr ? "" : user->pw_dir;
}

}  // namespace tfrfast
