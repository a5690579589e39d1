// Who may do what with a file that replaces another one.
#pragma once

#include <string>

namespace tfrfast {

// Gives the open file the mode of the one at `replaced`, if there is one, and its owner and group
// if this process may do that. Nobody gains a right: if the group cannot be kept, the file's group
// may do only what everybody may. Throws Error io, naming `replaced`.
void take_permissions(int descriptor, const std::string& replaced);

// Until take_permissions() is called, grants no more on the open file than the one at `replaced`
// does. Its owner may read and write it. Never fails.
void restrict_permissions(int descriptor, const std::string& replaced) noexcept;

// Leaves it to the owner to write to the open file. Never fails: where that cannot be done, who may
// write is looked at again when it is read.
void take_write_permission_from_others(int descriptor) noexcept;

}  // namespace tfrfast
