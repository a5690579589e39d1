// The damaged records that a reader has skipped.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/read/record_source.h"

namespace tfrfast {

// Safe from many threads, and while another thread forks.
class SkippedRecords {
 public:
  // Adds a record that was lost in these bytes. Adding a record again changes nothing.
  void add(const std::string& path, std::uint64_t begin, std::uint64_t end);
  void append_to(std::vector<SkippedBytes>& all) const;

 private:
  std::map<std::pair<std::string, std::uint64_t>, SkippedBytes> by_place_;
};

}  // namespace tfrfast
