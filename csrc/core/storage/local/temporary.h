// Names for files that are not complete yet, and the removal of those that killed processes left.
#pragma once

#include <string>

namespace tfrfast {

// A name in `folder` that no other process of any machine uses. It says which process it belongs
// to, and in which container, since which boot of which machine.
std::string temporary_name(const std::string& folder);

// The scope in which a process number is unique: one container, since one boot of one kernel. Empty
// if that is not known.
std::string scope_of_processes();

// Removes the files of such names in `folder` whose process is gone. Files of other machines,
// containers or boots stay, and so do those whose process is not known. Each process does this once
// for a folder. Never fails. Safe from many threads, and across fork().
void remove_abandoned(const std::string& folder) noexcept;

}  // namespace tfrfast
