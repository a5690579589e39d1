// Checks whether a file can be published at a place, before the file is written.
#pragma once

#include <string>

#include "core/storage/local/published_file.h"

namespace tfrfast {

// The functions throw the foreseeable Errors io of publishing: "<action> '<path>' failed: <reason>.
// <advice>".

// Returns the path to publish at, so that the shard appears as `path`: a link stays, and its target
// is replaced. Refuses a planted link. Throws Error invalid if the target is not a regular file.
std::string checked_target(const std::string& path, Existing existing);

// Checks `path` itself: whether the name is too long, a folder has the name, or another user's file
// has the name in a folder where only owners may replace their files.
void check_name(const std::string& path, const std::string& action, const std::string& advice);

// Checks the name, and that a file can be made in its folder, by making a file without a name.
// Removes the leftovers of killed processes from the folder.
void check_place(const std::string& path, const std::string& action, const std::string& advice);

// Checks that the folder can be flushed to the disk, which requires permission to read the folder.
void check_flushable(const std::string& folder);

}  // namespace tfrfast
