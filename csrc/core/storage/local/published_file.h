// A local file that appears under its path when complete, or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

#include "core/base/process.h"
#include "core/storage/local/file_descriptor.h"
#include "core/storage/local/remaining_pieces.h"

namespace tfrfast {

// The action of commit() if a file with the name exists.
enum class Existing : std::uint8_t {
  replace,  // replace the file in one step; open readers keep the old file
  keep,     // throw Error io (EEXIST)
};

using ByteView = std::span<const std::uint8_t>;

// A file in the folder of `path` that gets its name from commit(). Until then, the file has no name
// if the filesystem allows, so a killed process leaves nothing. Otherwise, the file has a temporary
// name that begins with a dot, and leftovers of killed processes under such names are removed from
// the folder.
//
// Destroying the object before commit() discards the bytes and leaves the path as it was. One
// thread at a time. Every member that is not noexcept may throw Error io. After an Error, only
// destroy the object.
//
// A file belongs to its process. In a forked child, every call that would change or publish the
// file throws Error closed, and the destructor does nothing.
class PublishedFile {
 public:
  explicit PublishedFile(std::string path);
  ~PublishedFile();
  PublishedFile(const PublishedFile&) = delete;
  PublishedFile& operator=(const PublishedFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  // Changes the name, within the same folder.
  void rename(std::string path) { path_ = std::move(path); }

  void append(std::span<const ByteView> pieces);
  void append(std::initializer_list<ByteView> pieces) {
    append(std::span(pieces.begin(), pieces.size()));
  }
  void append(const void* bytes, std::size_t count) {
    append({ByteView(static_cast<const std::uint8_t*>(bytes), count)});
  }

  // Durable: after a power cut, there is the whole file or none.
  void commit(bool durable, Existing existing = Existing::replace);

  // Flushes the appended bytes to the disk, so that a durable commit() has less to do.
  void flush();
  // Closes the descriptor until the next call, and gives the file a temporary name until commit().
  void park();
  // Makes commit() keep the permissions of the file that it replaces, if any. Until commit(), the
  // new file has no further permissions.
  void keep_permissions();
  // Makes commit() allow only the owner to write the file, whatever the permissions of a replaced
  // file.
  void keep_others_from_writing() { others_may_write_ = false; }
  // Sets the modification time back by the smallest step of the filesystem, so that no later write,
  // even within the same tick of the clock, can give the file that time. Stores the time in
  // `modified_ns`. False if the system did not set the time.
  bool set_back(std::int64_t* modified_ns);
  // A temporary name, if needed, is made in this folder, whose files are never taken for data. No
  // effect if the folder is on another filesystem.
  void keep_temporary_in(std::string folder);
  // Reserves disk space in large pieces: as many bytes as were written so far, at most `max_bytes`
  // at a time. The rest is freed at the end. Growing by small steps costs a filesystem more.
  void reserve_ahead(std::uint64_t max_bytes) noexcept { max_reserved_bytes_ = max_bytes; }
  // Makes the system write appended bytes to the disk while more bytes are appended.
  void flush_early() noexcept { flushes_early_ = true; }

 private:
  void write_all(RemainingPieces pieces);
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
  FileDescriptor file_;
  const HomeProcess home_;  // the only process that may remove the temporary file
  bool committed_ = false;
  std::uint64_t appended_bytes_ = 0;
  std::uint64_t reserved_bytes_ = 0;
  std::uint64_t max_reserved_bytes_ = 0;
  std::uint64_t flushing_bytes_ = 0;
  bool flushes_early_ = false;
  bool keeps_permissions_ = false;
  bool others_may_write_ = true;
};

// Renames a complete file within its filesystem, in one step, and gives it the permissions of the
// file that it replaces. Throws Error io.
void move_file(const std::string& from, const std::string& to, Existing existing);

}  // namespace tfrfast
