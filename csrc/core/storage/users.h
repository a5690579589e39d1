// Who files belong to.
#pragma once

#include <cstdint>
#include <string>

namespace tfrfast {

std::uint32_t this_user() noexcept;
std::string name_of_user(std::uint32_t number);  // as in "user 1000 (ada)", for people to read
std::string home_folder();                       // $HOME, else the account's; may be empty

}  // namespace tfrfast
