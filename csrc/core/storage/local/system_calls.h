// Calls on files that some systems lack, with fallbacks. A build with TFRFAST_PORTABLE leaves out
// the Linux-only calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tfrfast {

// Opens a file without a name in `folder`, for writing. -1 if that is impossible.
int open_unnamed(const std::string& folder) noexcept;
// Names the file, unless the name is taken. Returns 0, or -1 and errno.
int give_name(int descriptor, const std::string& path) noexcept;

// Like rename(), but keeps an existing file: -1 and EEXIST. Without such a system call, links the
// file and removes the old name. On a filesystem without links, checks the name first, and may
// replace a file that another process makes in between.
int rename_to_free_name(const std::string& from, const std::string& to) noexcept;

// Locks an open file or folder, alone or together with others. Waits for holders of conflicting
// locks, at most `max_wait_ms`. Returns 0, or an errno: EWOULDBLOCK if the lock is still held. The
// lock belongs to the open file: a forked child shares it, and it ends when all holders have closed
// the file, or one has called unlock(). Every supported system has such locks, so there is no
// fallback.
enum class OpenLock : std::uint8_t { alone, with_others };
int lock_within(int descriptor, OpenLock how, int max_wait_ms) noexcept;
void unlock(int descriptor) noexcept;

// Reserves disk space beyond a file's end. False if reserving is not known to help.
bool reserve_space(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept;

// Asks the system to begin writing a range to the disk. A hint.
void start_flushing(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept;

// Asks the system to read a range, at most its first GiB, into the page cache. A hint.
void advise_mapping(void* mapping, std::uint64_t offset, std::uint64_t bytes) noexcept;
void advise_file(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept;

// The first byte at or after `offset` outside holes, or the largest number. Returns `offset` if the
// system does not know holes. Moves the position.
std::uint64_t data_in_file(int descriptor, std::uint64_t offset) noexcept;

// Whether the byte is in the page cache. Empty if the system cannot tell.
std::optional<bool> cached_in_file(int descriptor, std::uint64_t offset) noexcept;

}  // namespace tfrfast
