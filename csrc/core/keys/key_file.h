// A key file: sorted hashes of keys, with the record number of each. docs/keys.md describes every
// byte.
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
// happens to the file later, each call returns numbers of existing records, or throws: Error
// truncated or io if the file can no longer be read, and stale_index if the file was changed.
class KeyFile {
 public:
  // Opens the key file at `path`, which maps keys to records of `data`. Throws Error io (ENOENT if
  // the file does not exist), stale_index if the file is not trusted (sidecar.h), and corrupt if
  // the file is not intact. The caller checks that the key file was built from `data`.
  static std::shared_ptr<const KeyFile> open(const std::string& path, const ShardSet& data);

  const std::string& feature() const noexcept { return feature_; }
  bool has_ints() const noexcept { return has_ints_; }  // otherwise byte strings
  std::uint64_t record_count() const noexcept { return record_count_; }
  std::size_t entry_count() const noexcept { return table_.size(); }
  std::uint64_t distinct_count() const noexcept { return distinct_count_; }
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  std::uint64_t stamp() const noexcept { return stamp_; }

  // Throws Error stale_index if the opened file was changed in place. A replaced file does not
  // count.
  void refuse_if_changed() const;

  // An entry and the number of its record. Without a number, no entry was found.
  struct FoundEntry {
    std::size_t entry = 0;
    std::optional<std::uint64_t> number;
  };
  // The first entry with this hash, and the next entry with this hash after `entry`.
  FoundEntry first(std::uint64_t hash) const;
  FoundEntry after(std::size_t entry, std::uint64_t hash) const;
  // For each hash, writes the number of the first record with that hash, or -1.
  void find(std::span<const std::uint64_t> hashes, std::int64_t* numbers) const;
  // Writes the hashes from the entry `first` on and, unless null, the numbers of their records.
  void copy_entries(std::size_t first, std::span<std::uint64_t> hashes,
                    std::int64_t* numbers) const;

 private:
  explicit KeyFile(std::shared_ptr<const StoredFile> file) : file_(std::move(file)) {}
  void read_header();
  void read_tables();
  [[noreturn]] void refuse(const std::string& why) const;
  [[noreturn]] void refuse_number() const;
  template <class EntryOf>
  FoundEntry look_at(std::uint64_t hash, const EntryOf& entry_of) const;
  template <class Leaf>
  void touch(const Leaf& leaf) const;

  const std::shared_ptr<const StoredFile> file_;
  std::vector<std::uint64_t> owned_;  // the tables; empty if the file is mapped
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
