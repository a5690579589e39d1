// The users that files belong to.
#pragma once

#include <cstdint>
#include <string>

namespace tfrfast {

std::uint32_t this_user() noexcept;
// This user and root: who can do anything here already.
bool is_trusted_user(std::uint32_t number) noexcept;
std::string name_of_user(std::uint32_t number);  // for messages: "user 1000 (ada)"
std::string home_folder();                       // $HOME, else the account's; may be empty

}  // namespace tfrfast
