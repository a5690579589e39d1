// What tells a file from another one, and from itself after a change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tfrfast {

struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;  // of the last change of anything; only the system sets it
  std::uint32_t owner = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// Throws Error io (ENOENT, EACCES, EISDIR, ...): only regular files can be shards.
FileIdentity identify_file(const std::string& path);
FileIdentity identify_open_file(int descriptor, const std::string& path);

struct Filesystem {
  // Faults of a mapping arrive late there, or as a hang.
  bool is_remote = false;
  // A file that nobody changes keeps device, inode and ctime there, and whoever changes it gives it
  // another ctime. Elsewhere (network and FUSE filesystems, overlays) a remount may change them
  // all.
  bool identity_lasts = false;
};
Filesystem filesystem_of(int descriptor);
Filesystem filesystem_of(const std::string& path);

// For tests, which have one filesystem and want to see both kinds: what filesystem_of() says from
// now on about identity_lasts. Nothing: what is true.
void assume_identity_lasts(std::optional<bool> lasts) noexcept;

}  // namespace tfrfast
