// Whether a file can be published somewhere, asked before there is one.
#pragma once

#include <string>

namespace tfrfast {

// Both throw the Error io that publishing would end in, as far as that can be known: "<action>
// '<path>' failed: <reason>. <advice>".

// What `path` says already: too long a name, a folder that has it, a file of somebody else's where
// only owners may replace theirs.
void check_name(const std::string& path, const std::string& action, const std::string& advice);

// The same, and that a file can be made in its folder, by making one without a name. What killed
// processes left there goes.
void check_place(const std::string& path, const std::string& action, const std::string& advice);

// That the folder can be flushed to the disk, which takes permission to read it.
void check_flushable(const std::string& folder);

}  // namespace tfrfast
