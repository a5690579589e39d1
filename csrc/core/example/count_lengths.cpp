#include "core/example/count_lengths.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/base/parallel.h"
#include "core/example/complaint.h"
#include "core/example/entries.h"
#include "core/example/list.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kPartBytes = 512 << 10;
constexpr std::uint64_t kRemotePartBytes = 8 << 20;

std::uint32_t count_in(WireBytes record, const std::string& name, const RecordPlace& place) {
  WireBytes found;
  const std::uint8_t* const stopped = for_each_entry(record, [&](WireBytes key, WireBytes feature) {
    // As in decoding features without a shape, an empty Feature replaces an earlier one.
    if (key.size() == name.size() && std::memcmp(key.data(), name.data(), name.size()) == 0) {
      found = feature;
    }
  });
  if (stopped != nullptr) {
    complain_malformed(place, static_cast<std::size_t>(stopped - record.data()));
  }
  ListKind kind;
  if (!read_list_kind(found, kind)) {
    FeatureSpec spec;
    spec.name = name;
    complain_no_list(place, spec);
  }
  if (kind == ListKind::none) return 0;
  return static_cast<std::uint32_t>(count_values(find_list(found, kind), kind));
}

}  // namespace

bool count_lengths(const RecordSource& source, const std::string& feature, std::int64_t begin,
                   std::int64_t end, unsigned threads, std::uint32_t* lengths) {
  const std::uint64_t part_bytes = source.is_remote() ? kRemotePartBytes : kPartBytes;
  const auto part_records = static_cast<std::int64_t>(
      std::max<std::uint64_t>(1, part_bytes / (source.mean_record_bytes() + 1)));
  const std::int64_t parts = (end - begin + part_records - 1) / part_records;
  std::atomic<bool> are_whole = true;
  const FindOrigin find_origin = [&source](std::int64_t record) {
    return source.origin(static_cast<std::uint64_t>(record));
  };
  parallel_for(static_cast<std::size_t>(parts), threads, [&](std::size_t part) {
    const std::int64_t first = begin + static_cast<std::int64_t>(part) * part_records;
    const std::int64_t count = std::min(part_records, end - first);
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), first);
    std::fill_n(lengths + (first - begin), count, 0u);
    const auto batch = source.read(ReadRequest{numbers});
    if (batch->size() != numbers.size()) are_whole = false;
    for (std::size_t row = 0; row < batch->size(); ++row) {
      const std::int64_t record = batch->indices()[row];
      lengths[record - begin] = count_in((*batch)[row], feature, {record, &find_origin});
    }
  });
  return are_whole;
}

}  // namespace tfrfast
