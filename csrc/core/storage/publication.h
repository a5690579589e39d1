// A file that appears under its path when complete, or not at all. Every writable kind of storage
// implements Publication.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

namespace tfrfast {

// The action of commit() if a file with the name exists.
enum class Existing : std::uint8_t {
  replace,  // replace the file in one step; open readers keep the old file
  keep,     // throw Error io (EEXIST)
};

using ByteView = std::span<const std::uint8_t>;

// Destroying the object before commit() discards the bytes and leaves the path as it was. One
// thread at a time. Every member that is not noexcept may throw Error io. After an Error, only
// destroy the object.
class Publication {
 public:
  virtual ~Publication() = default;
  Publication(const Publication&) = delete;
  Publication& operator=(const Publication&) = delete;

  const std::string& path() const noexcept { return path_; }
  // Changes the name, within the same folder.
  void rename(std::string path) { path_ = std::move(path); }

  virtual void append(std::span<const ByteView> pieces) = 0;
  void append(std::initializer_list<ByteView> pieces) {
    append(std::span(pieces.begin(), pieces.size()));
  }
  void append(const void* bytes, std::size_t count) {
    append({ByteView(static_cast<const std::uint8_t*>(bytes), count)});
  }

  // Durable: after a power cut, there is the whole file or none.
  virtual void commit(bool durable, Existing existing = Existing::replace) = 0;

  // The members below have an effect in some kinds of storage only.

  // Flushes the appended bytes to the disk, so that a durable commit() has less to do.
  virtual void flush() {}
  // Releases scarce resources, such as descriptors, until the next call.
  virtual void park() {}
  // Makes commit() keep the permissions of the file that it replaces, if any. Until commit(), the
  // new file has no further permissions.
  virtual void keep_permissions() {}
  // Makes commit() allow only the owner to write the file, whatever the permissions of a replaced
  // file.
  virtual void keep_others_from_writing() {}
  // Sets the modification time back by the smallest step of the filesystem, so that no later write,
  // even within the same tick of the clock, can give the file that time. Stores the time in
  // `modified_ns`. False if the system did not set the time.
  virtual bool set_back(std::int64_t* modified_ns) { return (void)modified_ns, false; }
  // A temporary name, if needed, is made in this folder, whose files are never taken for data.
  virtual void keep_temporary_in(std::string folder) { (void)folder; }
  // Reserves disk space in large pieces: as many bytes as were written so far, at most `max_bytes`
  // at a time. The rest is freed at the end. Growing by small steps costs a filesystem more.
  virtual void reserve_ahead(std::uint64_t max_bytes) noexcept { (void)max_bytes; }
  // Makes the system write appended bytes to the disk while more bytes are appended.
  virtual void flush_early() noexcept {}

 protected:
  explicit Publication(std::string path) : path_(std::move(path)) {}

 private:
  std::string path_;
};

}  // namespace tfrfast
