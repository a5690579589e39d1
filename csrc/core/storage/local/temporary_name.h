// Names incomplete files, and removes the incomplete files of killed processes.
#pragma once

#include <string>

namespace tfrfast {

// A name in `folder` that no other process of any machine uses. Contains the process's number, its
// container, and the boot of its machine.
std::string temporary_name(const std::string& folder);

// Removes files with temporary names in `folder` whose process is gone. Keeps files of other
// machines, containers and boots, and of unknown processes. Each process does so once per folder.
// Never fails. Safe from many threads, and across fork().
void remove_abandoned(const std::string& folder) noexcept;

}  // namespace tfrfast
