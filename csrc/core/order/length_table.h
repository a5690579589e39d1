// The lengths of records, counted once. Plans and graphs name a table by its hash and its file, and
// hold no number for each record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/index/shard_set.h"

namespace tfrfast {

// Stands for a table in descriptions.
struct LengthReference {
  std::string path;  // empty without a file
  std::uint64_t hash = 0;
};

// Immutable. Any number of threads.
class LengthTable {
 public:
  // Lengths in memory alone.
  explicit LengthTable(std::vector<std::uint32_t> lengths);
  // Reads a kept file, which tfrfast/loading/lengths.py writes. Throws Error io (ENOENT if there is
  // no file), corrupt if the file is not intact, and stale_index if it is not trusted with `data`.
  static std::shared_ptr<const LengthTable> open(const std::string& path,
                                                 const ShardSet* data = nullptr);

  std::size_t size() const noexcept { return lengths_.size(); }
  std::uint32_t operator[](std::size_t record) const noexcept { return lengths_[record]; }
  const LengthReference& reference() const noexcept { return reference_; }
  // Of a file: the data whose lengths were counted.
  const std::string& feature() const noexcept { return feature_; }
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  std::uint64_t stamp() const noexcept { return stamp_; }

  // Throws Error invalid if there is no file, and stale_index if the file has other lengths.
  static std::shared_ptr<const LengthTable> open(const LengthReference& reference);

 private:
  LengthTable() = default;

  std::vector<std::uint32_t> lengths_;
  LengthReference reference_;
  std::string feature_;
  std::uint64_t fingerprint_ = 0;
  std::uint64_t stamp_ = 0;
};

}  // namespace tfrfast
