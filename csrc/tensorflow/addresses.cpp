#include "tensorflow/addresses.h"

#include <algorithm>

#include "core/base/memory.h"

namespace tfrfast::tensorflow {
namespace {

void write_rows(KernelCall& call, int output, const Source* source, std::span<const Row> rows) {
  constexpr std::size_t kBytes = kAddressNumbers * sizeof(std::int64_t);
  PooledBuffer numbers(std::max(kBytes, rows.size() * kBytes));
  std::int64_t* next = numbers.as<std::int64_t>();
  for (const Row& row : rows) {
    *next++ = static_cast<std::int64_t>(source->shard_of(row));
    *next++ = static_cast<std::int64_t>(row.number);
    *next++ = static_cast<std::int64_t>(row.frame.offset);
    *next++ = static_cast<std::int64_t>(row.frame.payload_bytes);
  }
  const Shape shape = {static_cast<std::int64_t>(rows.size()), kAddressNumbers};
  call.set_tensor(output, DataType::int64, shape, std::move(numbers));
}

// Returns the end of a frame. Throws Error(invalid) for impossible numbers.
std::uint64_t end_of(std::span<const std::int64_t> address) {
  std::int64_t end = 0;
  if (address[1] < 0 || address[2] < 0 || address[3] < 0 ||
      __builtin_add_overflow(address[2], address[3], &end) ||
      __builtin_add_overflow(end, static_cast<std::int64_t>(kFrameOverhead), &end)) {
    throw Error(ErrorKind::invalid, "These numbers are not the address of a record.");
  }
  return static_cast<std::uint64_t>(end);
}

[[noreturn]] void throw_shorter(const StoredFile& file, const Row& row) {
  const auto offset = static_cast<std::int64_t>(row.frame.offset);
  throw Error(ErrorKind::stale_index,
              "'" + file.path() + "' became shorter while it was read: it had a record at byte " +
                  std::to_string(offset) + ", and now it has " + std::to_string(file.bytes()) +
                  " bytes. Begin the iteration again.",
              {file.path(), static_cast<std::int64_t>(row.number), offset});
}

}  // namespace

void write_found(KernelCall& call, int first, const Source* source, const Found& found) {
  const std::span<const Row> rows = found.rows;
  const std::size_t split = found.troubles.empty() ? rows.size() : found.troubles.front().row;
  write_rows(call, first, source, rows.first(split));
  call.set_string(first + 1, summary_of(found.troubles));
  write_rows(call, first + 2, source, rows.subspan(split));
}

std::vector<Row> rows_at(const Source& source, std::span<const std::int64_t> addresses) {
  if (addresses.size() % kAddressNumbers != 0) {
    throw Error(ErrorKind::invalid, "An address has four numbers.");
  }
  std::vector<Row> rows;
  rows.reserve(addresses.size() / kAddressNumbers);
  const auto address = [&](std::size_t row) {
    return addresses.subspan(row * kAddressNumbers, kAddressNumbers);
  };
  const std::size_t count = addresses.size() / kAddressNumbers;
  for (std::size_t begin = 0; begin < count;) {
    const std::int64_t shard = address(begin)[0];
    if (shard == kNoRecord) {
      ++begin;
      continue;
    }
    std::uint64_t stream_end = 0;
    std::size_t end = begin;
    for (; end < count && address(end)[0] == shard; ++end) {
      stream_end = std::max(stream_end, end_of(address(end)));
    }
    const IndexedShard& file = source.file(static_cast<std::size_t>(shard), stream_end);
    const std::uint64_t file_bytes = file.file->bytes();
    for (; begin < end; ++begin) {
      const auto number = static_cast<std::uint64_t>(address(begin)[1]);
      const Frame frame{static_cast<std::uint64_t>(address(begin)[2]),
                        static_cast<std::uint64_t>(address(begin)[3])};
      rows.push_back({&file, number, number, frame});
      if (end_of(address(begin)) > file_bytes) throw_shorter(*file.file, rows.back());
    }
  }
  return rows;
}

}  // namespace tfrfast::tensorflow
