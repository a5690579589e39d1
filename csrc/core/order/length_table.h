// The lengths of records, counted once. Plans and graphs name a table by its hash and its file, and
// hold no number for each record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/encoding.h"
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

// The records of an order that their lengths decide: records [first, first + records) of tables, or
// some of them. Record numbers count from `first`.
struct CountedRecords {
  std::vector<std::shared_ptr<const LengthTable>> tables;
  std::int64_t first = 0;
  std::int64_t records = 0;
  bool has_indices = false;
  std::vector<std::int64_t> indices;  // only these records

  void check() const;  // throws Error invalid
  std::size_t count() const noexcept {
    return has_indices ? indices.size() : static_cast<std::size_t>(records);
  }
  std::int64_t record(std::size_t i) const noexcept {
    return has_indices ? indices[i] : static_cast<std::int64_t>(i);
  }
  std::uint32_t length(std::int64_t record, std::size_t table = 0) const noexcept {
    return (*tables[table])[static_cast<std::size_t>(first + record)];
  }

  // The tables are encoded as references. open() opens them after decode(). An order that has
  // sorted its records closes them.
  void encode(Encoder& encoder) const;
  static CountedRecords decode(Decoder& decoder);
  void open();
  void close();
  std::vector<LengthReference> references;  // of closed tables
};

}  // namespace tfrfast
