// Hashes a multiset of records, independent of their order.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/record_hash.h"

namespace tfrfast {

struct RecordTotals {
  std::uint64_t record_count = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t content_hash = 0;  // the sum of all record hashes, modulo 2^64

  void add(std::span<const std::uint8_t> record) noexcept {
    ++record_count;
    payload_bytes += record.size();
    content_hash += record_hash(record);
  }
  friend bool operator==(const RecordTotals&, const RecordTotals&) = default;
};

}  // namespace tfrfast
