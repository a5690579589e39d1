// Bytes that appear under their path when they are complete, or not at all. Every kind of storage
// that can be written to implements this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

namespace tfrfast {

// What commit() does if there is a file of that name already.
enum class Existing : std::uint8_t {
  replace,  // it is replaced in one step; readers that have it open keep the old one
  keep,     // Error io (EEXIST)
};

using ByteView = std::span<const std::uint8_t>;

// If it is destroyed before commit(), the bytes are gone and the path stays as it was. One thread
// at a time. Every member that is not noexcept may throw Error io; then only destroy it.
class Publication {
 public:
  virtual ~Publication() = default;
  Publication(const Publication&) = delete;
  Publication& operator=(const Publication&) = delete;

  const std::string& path() const noexcept { return path_; }
  // Another name in the same folder.
  void rename(std::string path) { path_ = std::move(path); }

  virtual void append(std::span<const ByteView> pieces) = 0;
  void append(std::initializer_list<ByteView> pieces) {
    append(std::span(pieces.begin(), pieces.size()));
  }
  void append(const void* bytes, std::size_t count) {
    append({ByteView(static_cast<const std::uint8_t*>(bytes), count)});
  }

  // Durable: after a power cut there is the whole file or none.
  virtual void commit(bool durable, Existing existing = Existing::replace) = 0;

  // The members below do something in some kinds of storage, and nothing in others.

  // Flushes what was appended to the disk, so that less is left for a durable commit().
  virtual void flush() {}
  // Gives back scarce resources, such as descriptors, until the next call.
  virtual void park() {}
  // Makes commit() keep the permissions of the file that it replaces, if there is one. Until then
  // nothing more is granted than those.
  virtual void keep_permissions() {}
  // Makes commit() give it to its owner alone to write, whoever may write the file that it
  // replaces.
  virtual void keep_others_from_writing() {}
  // Sets the modification time back by the smallest step that the filesystem knows, so that no
  // later write, even within the same tick of the clock, can give the file that time. True if the
  // system did so. Stores the time in `modified_ns`.
  virtual bool set_back(std::int64_t* modified_ns) { return (void)modified_ns, false; }
  // If it needs a temporary name, it gets one in this folder, whose files are not taken for data.
  virtual void keep_temporary_in(std::string folder) { (void)folder; }
  // Reserves space in large pieces: as much as was written so far, but at most `max_bytes` at a
  // time. What is left over is given back at the end. Growing by small steps costs a filesystem
  // more.
  virtual void reserve_ahead(std::uint64_t max_bytes) noexcept { (void)max_bytes; }
  // Makes the system write to the disk what was appended while more is being appended.
  virtual void flush_early() noexcept {}

 protected:
  explicit Publication(std::string path) : path_(std::move(path)) {}

 private:
  std::string path_;
};

}  // namespace tfrfast
