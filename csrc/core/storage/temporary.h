// Names for files that are not complete yet, and what is left of those whose process was killed.
#pragma once

#include <string>

namespace tfrfast {

// A name in `folder` unlike any other of this or another process or machine. It says which process
// of which machine, or container, since when it was started, it belongs to.
std::string temporary_name(const std::string& folder);

// Removes the files of such names in `folder` whose process is gone. Whatever may be somebody's is
// left: what belongs to another machine, container or boot, or cannot be told. A process looks at a
// folder once. Never fails. Safe from many threads, and across fork().
void remove_abandoned(const std::string& folder) noexcept;

}  // namespace tfrfast
