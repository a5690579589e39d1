// Folders of this machine, and the names in them. Other storages have no folders: to make or flush
// one of theirs does nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/process.h"

namespace tfrfast {

// The two halves of a path.
std::string folder_of(const std::string& path);  // "." for a bare name
std::string name_of(const std::string& path);

// The path from the root, as long as the process has no other folder; an empty one is the folder of
// the process, with a slash. `path` itself if that folder is unknown.
std::string absolute_path(const std::string& path);

// The name that all links to a file share; `path` itself where there is nothing.
std::string resolve_path(const std::string& path);

enum class NameKind : std::uint8_t { nothing, file, folder, link, other };

// What a name stands for, as far as the system says; `nothing` where it does not.
struct NameStatus {
  NameKind kind = NameKind::nothing;
  std::uint64_t bytes = 0;
  std::uint32_t owner = 0;
  bool others_may_write = false;
  std::int64_t written_s = 0;
  std::int64_t used_s = 0;
  bool is_empty_file() const noexcept { return kind == NameKind::file && bytes == 0; }
};
NameStatus look_at(const std::string& path) noexcept;       // what a link points at
NameStatus look_at_name(const std::string& path) noexcept;  // the link itself

// Whether the path is one of an open file's.
bool is_named(int descriptor, const std::string& path) noexcept;

// The names in a folder, in no order. Throws Error io.
std::vector<std::string> list_folder(const std::string& folder);

// True if there was such a file and it is gone now.
bool remove_file(const std::string& path) noexcept;
// The same for a folder, if it is empty.
bool remove_folder(const std::string& folder) noexcept;

void flush_folder(const std::string& folder);  // to the disk; throws Error io

// Makes `folder` and its parents, if they are not there. Throws Error io: ENOTDIR if something else
// has the name.
void make_folders(const std::string& folder, unsigned mode = 0777);

// Remembers which of a folder and its parents are missing. The destructor removes those that are
// there by then and hold nothing: work that was refused or given up leaves none behind. It does
// nothing in a forked child.
class NewFolders {
 public:
  explicit NewFolders(const std::string& folder);
  ~NewFolders();
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;

 private:
  std::vector<std::string> missing_;  // the deepest one first
  const HomeProcess home_;
};

}  // namespace tfrfast
