#include "core/order/length_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/crc32c/crc32c.h"
#include "core/order/siphash.h"
#include "core/storage/local/sidecar.h"

namespace tfrfast {
namespace {

struct LengthsHeader {
  char magic[kBeginningBytes];
  std::uint32_t version;
  std::uint32_t value_bytes;  // 2 or 4
  std::uint64_t record_count;
  std::uint64_t fingerprint;
  std::uint64_t stamp;
  std::uint32_t name_bytes;
  std::uint32_t values_crc;
  std::uint32_t zero;
  std::uint32_t header_crc;  // of all bytes before the field, and of the name after the header
};
static_assert(sizeof(LengthsHeader) == 56);

constexpr std::uint32_t kLengthsVersion = 1;
constexpr std::size_t kLengthsPiece = std::size_t{1} << 20;

[[noreturn]] void refuse_lengths(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::corrupt,
              "'" + path + "' is not an intact file of lengths: " + why +
                  ". Remove it, and the lengths are counted again.",
              {path, {}, {}});
}

}  // namespace

LengthTable::LengthTable(std::vector<std::uint32_t> lengths)
    : lengths_(std::move(lengths)), reference_{{}, siphash_of(lengths_)} {}

std::shared_ptr<const LengthTable> LengthTable::open(const std::string& path,
                                                     const ShardSet* data) {
  const std::shared_ptr<const StoredFile> file = open_sidecar(path);
  if (data != nullptr) {
    data->refuse_unless_believed(*file, "The file of lengths",
                                 "Remove it, and the lengths are counted again.");
  }
  std::shared_ptr<LengthTable> table(new LengthTable());  // the constructor is private
  const std::uint64_t bytes = file->bytes();
  LengthsHeader header;
  if (bytes < sizeof header) refuse_lengths(path, "it is shorter than its header");
  file->read(0, reinterpret_cast<std::uint8_t*>(&header), sizeof header);
  if (std::memcmp(header.magic, kLengthsMagic, sizeof kLengthsMagic) != 0) {
    refuse_lengths(path, "it does not begin like one");
  }
  if (header.version != kLengthsVersion) {
    refuse_lengths(path, "it has version " + std::to_string(header.version) +
                             ", and this tfrfast reads " + std::to_string(kLengthsVersion));
  }
  if (header.name_bytes > bytes - sizeof header) refuse_lengths(path, "it ends within its header");
  std::string name(header.name_bytes, '\0');
  auto* const name_bytes = reinterpret_cast<std::uint8_t*>(name.data());
  file->read(sizeof header, name_bytes, name.size());
  std::uint32_t crc =
      crc32c(reinterpret_cast<const std::uint8_t*>(&header), offsetof(LengthsHeader, header_crc));
  crc = crc32c(name_bytes, name.size(), crc);
  if (crc != header.header_crc) refuse_lengths(path, "the checksum of its header does not match");
  const std::uint64_t left = bytes - sizeof header - header.name_bytes;
  const std::uint32_t width = header.value_bytes;
  if ((width != 2 && width != 4) || left % width != 0 || left / width != header.record_count ||
      !is_utf8({name_bytes, name.size()})) {
    refuse_lengths(path, "its size is not that of its lengths");
  }
  table->lengths_.resize(static_cast<std::size_t>(header.record_count));
  std::vector<std::uint8_t> piece(kLengthsPiece);
  crc = 0;
  for (std::uint64_t done = 0; done < left;) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), left - done));
    file->read(sizeof header + header.name_bytes + done, piece.data(), count);
    crc = crc32c(piece.data(), count, crc);
    std::uint32_t* out = table->lengths_.data() + done / width;
    if (width == 4) {
      std::memcpy(out, piece.data(), count);
    } else {
      std::uint16_t narrow;
      for (std::size_t i = 0; i < count; i += sizeof narrow) {
        std::memcpy(&narrow, piece.data() + i, sizeof narrow);
        *out++ = narrow;
      }
    }
    done += count;
  }
  if (crc != header.values_crc) refuse_lengths(path, "the checksum of its lengths does not match");
  table->reference_ = {path, siphash_of(table->lengths_)};
  table->feature_ = std::move(name);
  table->fingerprint_ = header.fingerprint;
  table->stamp_ = header.stamp;
  return table;
}

std::shared_ptr<const LengthTable> LengthTable::open(const LengthReference& reference) {
  if (reference.path.empty()) {
    throw Error(ErrorKind::invalid,
                "The lengths of this plan are an array of another process. Give the name of the "
                "feature instead, as in lengths=\"ids\": its lengths are kept in a file.");
  }
  std::shared_ptr<const LengthTable> table = open(reference.path);
  if (table->reference_.hash == reference.hash) return table;
  throw Error(
      ErrorKind::stale_index,
      "'" + reference.path + "' holds other lengths than those of this plan. Make the plan again.",
      {reference.path, {}, {}});
}

}  // namespace tfrfast
