// Whether a file can be published somewhere, checked before there is one.
#pragma once

#include <string>

#include "core/storage/publication.h"

namespace tfrfast {

// All throw the Error io that publishing would throw, as far as it can be foreseen: "<action>
// '<path>' failed: <reason>. <advice>".

// The path to publish a shard at so that it appears as `path`: a link stays, and what it points at
// is replaced. A planted link is refused. Throws Error invalid if that is not a regular file.
std::string checked_target(const std::string& path, Existing existing);

// Throws Error io (ELOOP) if `path` is a link that somebody else may have put there to lead a
// writer to another file: it belongs to neither this user nor root, and others may write to its
// folder.
void refuse_planted_link(const std::string& path);

// Checks `path` itself: whether the name is too long, is that of a folder, or that of somebody
// else's file in a folder where only owners may replace their files.
void check_name(const std::string& path, const std::string& action, const std::string& advice);

// Checks the name, and that a file can be made in its folder, by making one without a name. Removes
// what killed processes left there.
void check_place(const std::string& path, const std::string& action, const std::string& advice);

// Checks that the folder can be flushed to the disk, which takes permission to read it.
void check_flushable(const std::string& folder);

}  // namespace tfrfast
