// Publishes a local file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/base/process.h"
#include "core/storage/local/file_descriptor.h"
#include "core/storage/local/remaining_pieces.h"
#include "core/storage/publication.h"

namespace tfrfast {

// A file in the folder of `path` that gets its name from commit(). Until then, the file has no name
// if the filesystem allows, so a killed process leaves nothing. Otherwise, the file has a temporary
// name that begins with a dot, and leftovers of killed processes under such names are removed from
// the folder.
//
// A file belongs to its process. In a forked child, every call that would change or publish the
// file throws Error closed, and the destructor does nothing.
class PublishedFile final : public Publication {
 public:
  explicit PublishedFile(std::string path);  // throws Error io
  ~PublishedFile() override;

  using Publication::append;
  void append(std::span<const ByteView> pieces) override;
  void flush() override;
  // Gives the file a temporary name until commit().
  void park() override;
  void commit(bool durable, Existing existing = Existing::replace) override;

  void keep_permissions() override;
  void keep_others_from_writing() override { others_may_write_ = false; }
  bool set_back(std::int64_t* modified_ns) override;
  // No effect if the folder is on another filesystem.
  void keep_temporary_in(std::string folder) override;
  void reserve_ahead(std::uint64_t max_bytes) noexcept override { max_reserved_bytes_ = max_bytes; }
  void flush_early() noexcept override { flushes_early_ = true; }

 private:
  void write_all(RemainingPieces pieces);
  void open_again();
  void reserve(std::uint64_t end) noexcept;
  void start_flushing() noexcept;
  void give_back_space() noexcept;
  bool has_name() const noexcept { return !temporary_path_.empty(); }
  void take_name(Existing existing);
  void take_temporary_name();

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

std::unique_ptr<Publication> publish_local_file(const std::string& path);

// Renames a complete file within its filesystem, in one step, and gives it the permissions of the
// file that it replaces. Throws Error io.
void move_file(const std::string& from, const std::string& to, Existing existing);

}  // namespace tfrfast
