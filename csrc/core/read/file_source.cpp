#include "core/read/file_source.h"

#include <algorithm>
#include <mutex>
#include <numeric>

#include "core/base/fork.h"
#include "core/shard/framing.h"

namespace tfrfast {
namespace {

// Guards every source's list. A single lock lets fork() wait for it.
constinit std::mutex every_list;
std::mutex& skipped_mutex() {
  return every_list;
}
[[maybe_unused]] const int kGuarded = make_fork_wait_for<skipped_mutex>();

}  // namespace

void FileSource::leave_out(RecordBatch& batch, const std::vector<BadRow>& bad) const {
  if (bad.empty()) return;
  std::vector<bool> marked(batch.size(), false);
  for (const BadRow& each : bad) {
    marked[each.row] = true;
    const auto& place = each.error.place();
    const auto begin = static_cast<std::uint64_t>(*place.offset);
    const std::uint64_t bytes =
        each.damaged_bytes != 0 ? each.damaged_bytes : kFrameOverhead + batch[each.row].size();
    const std::lock_guard lock(skipped_mutex());
    skipped_.try_emplace({place.path, begin}, SkippedBytes{place.path, begin, begin + bytes, 1});
  }
  batch.remove_rows(marked);
}

void FileSource::append_skipped(std::vector<SkippedBytes>& all) const {
  const std::lock_guard lock(skipped_mutex());
  for (const auto& [place, skipped] : skipped_) all.push_back(skipped);
}

std::shared_ptr<const RecordBatch> FileSource::read(const ReadRequest& request) const {
  Rows rows = read_rows(request);
  if (request.valid != nullptr) {
    std::copy_n(request.valid, request.records.size(), rows.batch->valid());
  }
  for (BadRow& bad : rows.bad) {
    if (!is_skipped(bad)) throw std::move(bad.error);
  }
  leave_out(*rows.batch, rows.bad);
  return std::move(rows.batch);
}

RecordSource::Range FileSource::read_range(std::uint64_t begin, std::uint64_t end,
                                           bool is_announced) const {
  end = std::min(end, record_count());
  begin = std::min(begin, end);
  std::vector<std::int64_t> records(static_cast<std::size_t>(end - begin));
  std::iota(records.begin(), records.end(), static_cast<std::int64_t>(begin));
  Rows rows;
  try {
    rows = read_rows(ReadRequest{records, nullptr, options().threads, nullptr, is_announced});
  } catch (Error& failure) {
    // A single record that memory cannot hold must not hide the records after it.
    if (failure.kind() != ErrorKind::memory || end - begin != 1) throw;
    return {std::make_shared<const RecordBatch>(), std::move(failure), end};
  }
  Range range{nullptr, {}, end};
  const auto failed = std::find_if(rows.bad.begin(), rows.bad.end(),
                                   [this](const BadRow& bad) { return !is_skipped(bad); });
  if (failed != rows.bad.end()) {
    rows.batch->truncate(failed->row);
    range.next = begin + failed->row + 1;
    range.error = std::move(failed->error);
    rows.bad.erase(failed, rows.bad.end());
  }
  leave_out(*rows.batch, rows.bad);
  range.batch = std::move(rows.batch);
  return range;
}

}  // namespace tfrfast
