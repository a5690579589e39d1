// Calls on files that not every system has, with fallbacks where they are missing. A build with
// TFRFAST_PORTABLE leaves out those that only Linux has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tfrfast {

// Opens a file without a name in `folder`, for writing. -1 where that is not possible.
int open_unnamed(const std::string& folder) noexcept;
// Gives it a name, unless there is such a file. 0, or -1 and errno.
int give_name(int descriptor, const std::string& path) noexcept;

// Like rename(), but keeps an existing file: -1 and EEXIST. Where the system has no such call, it
// links the file and removes the old name. Where the filesystem has no links, it looks first, and
// may replace a file that another process makes in that moment.
int rename_to_free_name(const std::string& from, const std::string& to) noexcept;

// Takes the lock of a file that is open for reading and writing. 0, or -1 and EWOULDBLOCK while it
// is taken. It is given back at the latest when the process ends. Where the system has only the
// locks of POSIX, other threads of this process are not kept out.
extern const bool kLocksKeepThreadsOut;
int try_lock(int descriptor) noexcept;
void unlock(int descriptor) noexcept;

// Locks an open file or folder, alone or together with others. 0, or -1 and EWOULDBLOCK while
// others are in the way. The lock belongs to what was opened: a forked child has it, too, and it
// ends when all have closed it, or one has called unlock_opened(). Every system that we build for
// has such locks, so there is no fallback.
enum class OpenLock : std::uint8_t { alone, with_others };
int try_lock_opened(int descriptor, OpenLock how) noexcept;
void unlock_opened(int descriptor) noexcept;

// Reserves disk space beyond a file's end. False where that is not known to help.
bool reserve_space(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept;

// Asks the system to begin writing a range to the disk. A hint.
void start_flushing(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept;

// Asks for a range, or its first GiB, to be read into the page cache. A hint.
void advise_mapping(void* mapping, std::uint64_t offset, std::uint64_t bytes) noexcept;
void advise_file(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept;

// The first byte at or after `offset` that is not in a hole; the largest number if there is none.
// `offset` itself where holes are not known.
std::uint64_t data_in_file(int descriptor, std::uint64_t offset) noexcept;

// Whether the byte is in the page cache; empty where the system cannot tell.
std::optional<bool> cached_in_file(int descriptor, std::uint64_t offset) noexcept;

}  // namespace tfrfast
