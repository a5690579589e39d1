#include "core/storage/local/users.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

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

bool is_group_of_one(std::uint32_t number) noexcept {
  passwd user_entry;
  passwd* user = nullptr;
  char user_text[4096];
  ::getpwuid_r(this_user(), &user_entry, user_text, sizeof user_text, &user);
  struct group group_entry;
  struct group* group = nullptr;
  char group_text[4096];
  ::getgrgid_r(number, &group_entry, group_text, sizeof group_text, &group);
  if (user == nullptr || group == nullptr || user->pw_gid != number) return false;
  if (std::strcmp(user->pw_name, group->gr_name) != 0) return false;
  for (char** member = group->gr_mem; *member != nullptr; ++member) {
    if (std::strcmp(*member, user->pw_name) != 0) return false;
  }
  return true;
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
