// Local folders, and the names in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/process.h"

namespace tfrfast {

// Split a path into its folder and its name.
std::string folder_of(const std::string& path);  // "." for a bare name
std::string name_of(const std::string& path);

// Returns the path from the root, valid while the process stays in its folder. For an empty path,
// the process's folder with a slash. Returns `path` if the folder is unknown.
std::string absolute_path(const std::string& path);

// Follows all links. Returns `path` if nothing has the name.
std::string resolve_path(const std::string& path);

enum class NameKind : std::uint8_t { nothing, file, folder, link, other };

// The file behind a name, according to the system. `nothing` if the system does not tell.
struct NameStatus {
  NameKind kind = NameKind::nothing;
  std::uint64_t bytes = 0;
  std::uint32_t owner = 0;
  bool others_may_write = false;
  std::int64_t written_s = 0;
  std::int64_t used_s = 0;
  bool is_empty_file() const noexcept { return kind == NameKind::file && bytes == 0; }
};
NameStatus look_at(const std::string& path) noexcept;       // of a link's target
NameStatus look_at_name(const std::string& path) noexcept;  // of the link itself

// Lists the names in a folder, in no order. Throws Error io.
std::vector<std::string> list_folder(const std::string& folder);

// True if the file existed and is removed.
bool remove_file(const std::string& path) noexcept;
// Removes an empty folder. True if it existed and is removed.
bool remove_folder(const std::string& folder) noexcept;

void flush_folder(const std::string& folder);  // to the disk; throws Error io

// Makes `folder` and its parents as necessary. Throws Error io: ENOTDIR if anything but a folder
// has a name.
void make_folders(const std::string& folder, unsigned mode = 0777);

// Remembers which of a folder and its parents are missing. The destructor removes each missing
// folder that exists by then and is empty, so refused or abandoned work leaves no folders. Does
// nothing in a forked child.
class NewFolders {
 public:
  explicit NewFolders(const std::string& folder);
  ~NewFolders();
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;

 private:
  std::vector<std::string> missing_;  // the deepest first
  const HomeProcess home_;
};

}  // namespace tfrfast
