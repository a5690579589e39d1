// Who may do what with a file that replaces another one.
#pragma once

#include <string>

namespace tfrfast {

// Gives the open file the mode of the one at `replaced`, if there is one, and its owner and group
// as far as this process may. Nobody gets a right by that which he did not have: where the group
// cannot be kept, the new one may do what everybody may. Throws Error io, naming `replaced`.
void take_permissions(int descriptor, const std::string& replaced);

// Takes from the open file what the one at `replaced` does not grant, until it gets its permissions
// for good; its owner may go on to read and write it. Never fails.
void restrict_permissions(int descriptor, const std::string& replaced) noexcept;

}  // namespace tfrfast
