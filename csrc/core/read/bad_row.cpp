#include "core/read/bad_row.h"
#include "core/index/index_state.h"

#include <optional>
#include <string>

#include "core/crc32c/hex.h"

namespace tfrfast {
namespace {

// The number of headers examined on each side of a bad row, to tell a damaged header from an index
// that no longer fits.
constexpr int kNeighbours = 4;

// After the end of a truncated file, the last page of a mapping shows zeros without a fault.
bool is_shorter_now(const StoredFile& file) {
  try {
    return file.facts_now().bytes < file.facts().bytes;
  } catch (const Error&) {
    return false;
  }
}

// Whether the file changed since the shard was opened. At opening, the index fitted.
bool changed_since_opened(const IndexedShard& shard) {
  try {
    return !shard.file->is_still(shard.file->facts_now());
  } catch (const Error&) {
    return true;
  }
}

// Goes from `row` in the direction of `step` to the first intact header, and returns whether the
// header has the indexed length. Empty if the shard ends first.
std::optional<bool> next_header_fits(const Row& row, std::uint64_t step) {
  const ShardIndex& index = *row.shard->index;
  std::uint64_t number = row.number + step;  // before record 0, wraps to a number past the last
  for (int tries = 0; tries < kNeighbours; ++tries, number += step) {
    if (number >= index.record_count()) return std::nullopt;
    const Frame frame = index.frame(number);
    std::uint8_t bytes[kHeaderBytes];
    row.shard->file->read(frame.offset, bytes, sizeof bytes);
    const FrameHeader header = decode_header(bytes);
    if (header_is_intact(header)) return header.payload_bytes == frame.payload_bytes;
  }
  return false;
}

// For a shard whose file changed. Returns whether damage is limited to this header and some
// neighbours. If records had moved, no header would be at its indexed place.
bool index_fits_around(const Row& row) {
  if (row.shard->index == nullptr) return false;
  try {
    const std::optional<bool> before = next_header_fits(row, ~std::uint64_t{0});
    const std::optional<bool> after = next_header_fits(row, 1);
    return (before || after) && before.value_or(true) && after.value_or(true);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string describe(const Row& row) {
  std::string text =
      "record " + std::to_string(row.number) + " of '" + row.shard->file->path() + "'";
  if (row.record != row.number) text += " (record " + std::to_string(row.record) + " of all)";
  return text + " at " + row.shard->file->describe_byte(row.frame.offset);
}

BadRow explain(const Row& row, std::size_t batch_row, Verdict verdict, const Seal& seal,
               MaskedCrc computed, SkipAdvice advice) {
  if (is_shorter_now(*row.shard->file)) {
    try {
      throw_mapping_fault(*row.shard->file, row.frame.offset);
    } catch (const Error& error) {
      return {batch_row, error, false};
    }
  }
  const FrameHeader header = decode_header(seal.header);
  const ErrorPlace place{row.shard->file->path(), static_cast<std::int64_t>(row.number),
                         static_cast<std::int64_t>(row.frame.offset)};
  const std::string reindex =
      " The file was changed since it was indexed: index it again with `tfrfast index --force " +
      row.shard->file->path() + "`, then open it again.";
  const std::string restore =
      advice == SkipAdvice::try_it
          ? " Restore the file, or leave such records out with on_corruption=\"skip\"."
          : " Restore the file. on_corruption=\"skip\" leaves this record out of batches and "
            "iteration, but a request for this record alone returns it or is an error.";
  if (verdict == Verdict::other_length) {
    return {batch_row,
            Error(ErrorKind::stale_index,
                  "The index does not fit: " + describe(row) + " should have " +
                      std::to_string(row.frame.payload_bytes) + " bytes, but the file says " +
                      std::to_string(header.payload_bytes) + "." + reindex,
                  place),
            false};
  }
  if (verdict == Verdict::bad_header) {
    const bool changed = changed_since_opened(*row.shard) && !index_fits_around(row);
    return {batch_row,
            Error(changed ? ErrorKind::stale_index : ErrorKind::corrupt,
                  (changed ? "The index does not fit: " : "Corrupt header: ") + describe(row) +
                      " should have a length of " + std::to_string(row.frame.payload_bytes) +
                      " with masked CRC-32C " + hex(mask_crc(crc32c_u64(row.frame.payload_bytes))) +
                      ", but the file has length " + std::to_string(header.payload_bytes) +
                      " and CRC " + hex(header.length_crc) + "." + (changed ? reindex : restore),
                  place),
            !changed};
  }
  return {batch_row,
          Error(ErrorKind::corrupt,
                "Corrupt payload: " + describe(row) + " has " +
                    std::to_string(row.frame.payload_bytes) + " bytes with masked CRC-32C " +
                    hex(computed) + ", but the file expects " + hex(decode_footer(seal.footer)) +
                    "." + restore,
                place),
          true};
}

}  // namespace tfrfast
