// Files that appear under their name only when they are complete.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/base/process.h"

namespace tfrfast {

// What commit() does where there is a file of that name already.
enum class Existing : std::uint8_t {
  replace,  // it is replaced in one step; whoever has it open keeps it
  keep,     // Error io (EEXIST)
};

// Bytes in the folder of `path` that commit() gives that name. Until then they have none at all
// where the filesystem can do that, so that nothing is left of a process that was killed; elsewhere
// a temporary one, that of a dot file. Destroyed before commit(), the bytes are gone, and whatever
// `path` was stays as it was. What killed processes left in the folder under such names is removed.
// One thread at a time.
//
// A file is its process's: in a forked child whatever would change or publish it is Error closed,
// and the destructor leaves it alone.
class PublishedFile {
 public:
  explicit PublishedFile(std::string path);  // throws Error io
  ~PublishedFile();
  PublishedFile(const PublishedFile&) = delete;
  PublishedFile& operator=(const PublishedFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  // Another name in the same folder.
  void rename(std::string path) { path_ = std::move(path); }

  // Where it gets a temporary name, if ever it needs one and that is the same filesystem: a folder
  // whose files nobody takes for data.
  void keep_temporary_in(std::string folder);

  // commit() gives it the permissions of the file that it replaces, if there is one; until then it
  // grants no more than those.
  void keep_permissions();

  // Takes space in large pieces, up to `most_bytes` and to what was written so far at a time, and
  // gives back at the end what was too much. Spares a filesystem most of the work of growing.
  void reserve_ahead(std::uint64_t most_bytes) noexcept { most_reserved_bytes_ = most_bytes; }
  // Has the system write to the disk what was appended while more is being appended.
  void flush_behind() noexcept { flushes_behind_ = true; }

  // All of these throw Error io; after that only the destructor is of use.
  void append(const void* bytes, std::size_t count);
  void append(iovec* pieces, int count);  // uses (alters) the array it is given
  void write_at(std::uint64_t offset, const void* bytes, std::size_t count);
  // Sets the time of the last write back by the least that the filesystem can tell: no write that
  // comes later, be it within the same tick of the clock, can give the file that time. True if the
  // system did so. The time goes to `modified_ns`.
  bool set_back(std::int64_t* modified_ns);
  void flush();  // to the disk
  // Lets go of the file descriptor until the next call; needs a temporary name.
  void park();

  // Durable: the file before its name and the folder after it are flushed to the disk, so that
  // after a power cut there is the whole file or none.
  void commit(bool durable, Existing existing = Existing::replace);

 private:
  void write_all(std::uint64_t offset, iovec* pieces, int count);
  void open_again();
  void reserve(std::uint64_t end) noexcept;
  void start_flushing() noexcept;
  void give_back_space() noexcept;
  bool has_name() const noexcept { return !temporary_path_.empty(); }
  void take_name(Existing existing);
  void take_temporary_name();

  std::string path_;
  std::string temporary_folder_;
  std::string temporary_path_;  // empty while the file has no name
  int descriptor_ = -1;
  const HomeProcess home_;  // which alone may remove the temporary file
  bool committed_ = false;
  std::uint64_t appended_bytes_ = 0;
  std::uint64_t reserved_bytes_ = 0;
  std::uint64_t most_reserved_bytes_ = 0;
  std::uint64_t flushing_bytes_ = 0;
  bool flushes_behind_ = false;
  bool keeps_permissions_ = false;
};

// Gives a complete file another name on its filesystem, in one step, and the permissions of what it
// replaces. Throws Error io.
void move_file(const std::string& from, const std::string& to, Existing existing);

}  // namespace tfrfast
