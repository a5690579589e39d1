// A key file: sorted hashes of keys, and the numbers of the records that have them. docs/keys.md
// describes it byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/index/shard_set.h"
#include "core/keys/key_table.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// Any number of threads. The tables are mapped, and checked when the file is opened. Whatever
// becomes of the file later, each call returns numbers of records that exist, or throws: Error
// truncated or io if the file can no longer be read, and stale_index if it was changed.
class KeyFile {
 public:
  // Opens the key file at `path`, which says where records of `data` are. Throws Error io (ENOENT
  // if there is none), stale_index if it may not be believed (own_file.h), and corrupt if it is not
  // intact. Whether it is of these data is for the caller to see.
  static std::shared_ptr<const KeyFile> open(const std::string& path, const ShardSet& data);

  const std::string& feature() const noexcept { return feature_; }
  bool has_ints() const noexcept { return has_ints_; }  // else byte strings
  std::uint64_t record_count() const noexcept { return record_count_; }
  std::size_t entry_count() const noexcept { return table_.size(); }
  std::uint64_t distinct_count() const noexcept { return distinct_count_; }
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  std::uint64_t stamp() const noexcept { return stamp_; }

  // Throws Error stale_index if the file was changed in place since it was opened. A file that has
  // replaced it does not count.
  void refuse_if_changed() const;

  // An entry with a hash, and the number of its record; no number if there is no such entry.
  struct Found {
    std::size_t entry = 0;
    std::optional<std::uint64_t> number;
  };
  // The first entry that has this hash, and the one after an entry that has it.
  Found first(std::uint64_t hash) const;
  Found after(std::size_t entry, std::uint64_t hash) const;
  // For each hash, the number of the first record that has it; -1 if there is none.
  void find(std::span<const std::uint64_t> hashes, std::int64_t* numbers) const;
  void copy_hashes(std::uint64_t* hashes) const;

 private:
  explicit KeyFile(std::shared_ptr<const StoredFile> file) : file_(std::move(file)) {}
  void read_header();
  void read_tables();
  [[noreturn]] void refuse(const std::string& why) const;
  [[noreturn]] void refuse_number() const;
  template <class EntryOf>
  Found look_at(std::uint64_t hash, const EntryOf& entry_of) const;
  template <class Leaf>
  void touch(const Leaf& leaf) const;

  const std::shared_ptr<const StoredFile> file_;
  std::vector<std::uint64_t> owned_;  // the tables, if the file is not mapped
  std::string feature_;
  bool has_ints_ = false;
  unsigned number_bytes_ = 1;
  std::uint64_t record_count_ = 0;
  std::uint64_t entry_count_ = 0;
  std::uint64_t distinct_count_ = 0;
  std::uint64_t fingerprint_ = 0;
  std::uint64_t stamp_ = 0;
  std::uint64_t tables_at_ = 0;
  std::uint32_t hashes_crc_ = 0;
  std::uint32_t numbers_crc_ = 0;
  KeyTable table_{{}, nullptr, 1};
};

}  // namespace tfrfast
