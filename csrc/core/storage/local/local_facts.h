// The system's facts about a file. A file's version is device, inode and ctime. ctime is the time
// of the last change of anything, which only the system sets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/storage/file_facts.h"

namespace tfrfast {

// On local filesystems a file keeps its version until it changes, and every change gives the file a
// new ctime. On network and FUSE filesystems and overlays, a remount may change the whole version.
//
// The functions below throw Error io (ENOENT, EACCES, EISDIR, ...), and invalid for anything but a
// regular file.
FileFacts examine_local_file(const std::string& path);
void refuse_unless_regular(const std::string& path);

// Examines many files. Files of one folder and device share a filesystem, so the filesystem is
// examined once per folder.
class LocalExaminer {
 public:
  FileFacts examine(const std::string& path);  // throws like examine_local_file()

 private:
  bool versions_last(const std::string& path, std::uint64_t device);

  std::string folder_;  // with its slash
  bool knows_folder_ = false;
  std::uint64_t device_ = 0;
  bool versions_last_ = false;
};

struct LocalFacts {
  FileFacts facts;
  bool is_on_network = false;  // faults of a mapping arrive late, or as a hang
};
LocalFacts examine_open_file(int descriptor, const std::string& path);
// The same for a file whose filesystem was examined before.
FileFacts examine_open_file(int descriptor, const std::string& path, bool version_lasts);

inline bool is_same_file(const FileFacts& a, const FileFacts& b) noexcept {
  return a.version.words[0] == b.version.words[0] && a.version.words[1] == b.version.words[1];
}
inline std::int64_t ctime_ns_of(const FileFacts& facts) noexcept {
  return static_cast<std::int64_t>(facts.version.words[2]);
}

// ---- file times, from a clock that ticks ----
//
// A file that changes twice within a tick looks the same after both changes.

// A file modified less than this ago is not settled: some filesystems keep times in steps of one or
// two seconds.
inline constexpr std::int64_t kRecentNs = 2'000'000'000;

// Whether any later change will change the facts. `now_ns` is the present time, and `tick_ns` the
// last tick of the system's clock for file times. If ctime counts, ctime would be enough: any later
// change gives the file a ctime of at least `tick_ns`. The modification time is judged as well, and
// first, so that only a clock set back by kRecentNs or more can deceive us.
bool is_settled(const FileFacts& facts, std::int64_t now_ns, std::int64_t tick_ns) noexcept;

// Like is_settled(), by the system's clocks. If the file was changed within the current tick, waits
// for the next tick, some milliseconds.
bool await_settled(const FileFacts& facts) noexcept;

// For tests, which have one filesystem and need both kinds. Sets version_lasts of all files
// examined from now on. Empty restores the truth.
void assume_versions_last(std::optional<bool> last) noexcept;

}  // namespace tfrfast
