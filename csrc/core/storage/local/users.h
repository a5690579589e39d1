// The users to whom files belong.
#pragma once

#include <cstdint>
#include <string>

namespace tfrfast {

std::uint32_t this_user() noexcept;
// This user and root, who may do anything here already.
bool is_trusted_user(std::uint32_t number) noexcept;
std::string name_of_user(std::uint32_t number);  // for messages: "user 1000 (ada)"
// Whether this user is the group's only member, according to the system: many systems give each
// user a group of the same name.
bool is_group_of_one(std::uint32_t group) noexcept;
std::string home_folder();  // $HOME, or the account's folder; may be empty

}  // namespace tfrfast
