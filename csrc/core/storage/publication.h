// Bytes that appear under their path whole, when they are complete, or not at all. Every kind of
// storage that can be written to implements this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

namespace tfrfast {

// What commit() does where there is a file of that name already.
enum class Existing : std::uint8_t {
  replace,  // it is replaced in one step; whoever has it open keeps it
  keep,     // Error io (EEXIST)
};

using ByteView = std::span<const std::uint8_t>;

// Destroyed before commit(), the bytes are gone, and whatever the path was stays as it was. One
// thread at a time. What is not noexcept throws Error io; after that only the destructor is of use.
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

  // What follows means something on some storages, and nothing on others.

  // Puts on the disk what was appended, so that less is left to do for a durable commit().
  virtual void flush() {}
  // Lets go of what there are few of, as descriptors, until the next call.
  virtual void park() {}
  // commit() gives it the permissions of the file that it replaces, if there is one; until then it
  // grants no more than those.
  virtual void keep_permissions() {}
  // Sets the time of the last write back by the least that the filesystem can tell: no write that
  // comes later, be it within the same tick of the clock, can give the file that time. True if the
  // system did so. The time goes to `modified_ns`.
  virtual bool set_back(std::int64_t* modified_ns) { return (void)modified_ns, false; }
  // Where it gets a temporary name, if ever it needs one: a folder whose files nobody takes for
  // data.
  virtual void keep_temporary_in(std::string folder) { (void)folder; }
  // Takes space in large pieces, up to `max_bytes` and to what was written so far at a time, and
  // gives back at the end what was too much. Spares a filesystem most of the work of growing.
  virtual void reserve_ahead(std::uint64_t max_bytes) noexcept { (void)max_bytes; }
  // Has the system write to the disk what was appended while more is being appended.
  virtual void flush_behind() noexcept {}

 protected:
  explicit Publication(std::string path) : path_(std::move(path)) {}

 private:
  std::string path_;
};

}  // namespace tfrfast
