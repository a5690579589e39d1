// Folders, and the two halves of a path.
#pragma once

#include <string>

namespace tfrfast {

void flush_folder(const std::string& folder);  // to the disk; throws Error io

// Makes `folder` and those it lies in, if they are not there. Throws Error io: ENOTDIR if something
// else has the name.
void make_folders(const std::string& folder, unsigned mode = 0777);

std::string folder_of(const std::string& path);  // "." for a bare name
std::string name_of(const std::string& path);

}  // namespace tfrfast
