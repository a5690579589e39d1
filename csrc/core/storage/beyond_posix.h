// Calls on files that not every system has, with what does instead where they are missing. Building
// with TFRFAST_PORTABLE leaves out those that only Linux has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tfrfast {

// Opens a file in `folder` that has no name yet, to write to. -1 where that cannot be had.
int open_unnamed(const std::string& folder) noexcept;
// Gives it one, unless there is such a file. 0, or -1 and errno.
int give_name(int descriptor, const std::string& path) noexcept;

// rename() that leaves what is there: -1 and EEXIST. Where the system has no such call, a link and
// then the old name's removal; where the filesystem has no links, it looks first, and another
// process that comes between is not seen.
int rename_to_free_name(const std::string& from, const std::string& to) noexcept;

// Takes disk space beyond a file's end. False where that is not known to be of use.
bool reserve_space(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept;

// Has the system begin to write a range to the disk. A hint.
void start_flushing(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept;

// Has a range, or its first GiB, brought into the page cache. A hint.
void advise_mapping(void* mapping, std::uint64_t offset, std::uint64_t bytes) noexcept;
void advise_file(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept;

// The first byte at or after `offset` that is in no hole; the largest number if there is none.
// Where nobody knows of holes, `offset` itself.
std::uint64_t data_in_file(int descriptor, std::uint64_t offset) noexcept;

// Whether the byte lies in the page cache; empty where nobody can tell.
std::optional<bool> cached_in_file(int descriptor, std::uint64_t offset) noexcept;

}  // namespace tfrfast
