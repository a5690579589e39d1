// Whether a file can be published somewhere, asked before there is one.
#pragma once

#include <string>

#include "core/storage/publication.h"

namespace tfrfast {

// All throw the Error io that publishing would end in, as far as that can be known: "<action>
// '<path>' failed: <reason>. <advice>".

// The path to publish a shard at that is to be had under the name `path`: what a link points at,
// for the link stays. Throws Error invalid if that is no regular file.
std::string checked_target(const std::string& path, Existing existing);

// What `path` says already: too long a name, a folder that has it, a file of somebody else's where
// only owners may replace theirs.
void check_name(const std::string& path, const std::string& action, const std::string& advice);

// The same, and that a file can be made in its folder, by making one without a name. What killed
// processes left there goes.
void check_place(const std::string& path, const std::string& action, const std::string& advice);

// That the folder can be flushed to the disk, which takes permission to read it.
void check_flushable(const std::string& folder);

}  // namespace tfrfast
