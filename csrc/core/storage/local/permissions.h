// Sets the permissions of a file that replaces another file.
#pragma once

#include <string>

namespace tfrfast {

// Gives the open file the mode of the file at `replaced`, if that file exists, and its owner and
// group if this process may set them. No user gains a right: if the group cannot be kept, the new
// group gets only the rights of all users. Throws Error io, naming `replaced`.
void take_permissions(int descriptor, const std::string& replaced);

// Until take_permissions(), limits the open file's permissions to those of the file at `replaced`.
// The owner may read and write the open file. Never fails.
void restrict_permissions(int descriptor, const std::string& replaced) noexcept;

// Lets only the owner write to the open file. Never fails: if the permissions cannot be changed,
// the reader checks who may write.
void take_write_permission_from_others(int descriptor) noexcept;

}  // namespace tfrfast
