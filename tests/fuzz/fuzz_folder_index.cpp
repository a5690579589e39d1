// Loads any bytes as the index of a folder. The index is refused, or all of its contents lie
// inside.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/crc32c/crc32c.h"
#include "core/index/folder_index.h"
#include "may_throw.h"
#include "memory_file.h"

using namespace tfrfast;

namespace {

using Bytes = std::vector<std::uint8_t>;

// Places in the file, as docs/index-format.md describes them.
constexpr std::size_t kHeaderSize = 64;
constexpr std::size_t kPartHeaderSize = 40;
constexpr std::size_t kEntrySize = 160;

void seal(Bytes& index, std::size_t crc_at, std::uint64_t from, std::uint64_t bytes) {
  store_little_endian<std::uint32_t>(&index[crc_at], crc32c(index.data() + from, bytes));
}

// Gives any bytes the right checksums, so that the code after the checksums is tested.
void repair(Bytes& index, std::uint8_t how) {
  if (index.size() < kHeaderSize) return;
  const auto field = [&index](std::size_t at) {
    return load_little_endian<std::uint64_t>(index.data() + at);
  };
  const auto set = [&index](std::size_t at, std::uint64_t value) {
    store_little_endian<std::uint64_t>(&index[at], value);
  };
  const std::size_t size = index.size();
  if (how & 1) {
    std::memcpy(index.data(), "TFRFSET\n", 8);
    store_little_endian<std::uint32_t>(&index[8], 2);
    set(16, size);
    if (how & 16) set(24, kHeaderSize);
  }
  // The parts from the last to the first. Each part may lead to another.
  std::uint64_t at = field(24);
  for (int parts = 0;
       parts < 8 && at % 8 == 0 && at >= kHeaderSize && at <= size && size - at >= kPartHeaderSize;
       ++parts) {
    const std::uint64_t left = size - at - kPartHeaderSize;
    if (how & 2) {
      set(at, (field(at) - kPartHeaderSize) % (left + 1) + kPartHeaderSize);
      if (how & 32) set(at + 8, field(at + 8) % at / 8 * 8);
      set(at + 16, field(at + 16) % (left / kEntrySize + 1));
      set(at + 24, field(at + 24) % (left + 1) / 8 * 8);
    }
    if ((how & 4) && field(at + 24) <= left) {
      seal(index, at + 32, at + kPartHeaderSize, field(at + 24));
    }
    if (how & 8) seal(index, at + 36, at, 36);
    if (field(at + 8) >= at) break;
    at = field(at + 8);
  }
  if (how & 8) seal(index, 60, 0, 60);
}

void look_through(const FolderIndex& index, std::uint64_t file_bytes) {
  std::pair<std::string, std::uint64_t> before;
  for (const DirectoryEntry& entry : index.entries()) {
    const std::string name(index.name_of(entry));
    require(std::make_pair(name, entry.data) > before);
    require(index.find(name, entry.data) == &entry);
    require(entry.sections.at >= kHeaderSize && entry.sections.at <= file_bytes &&
            entry.sections.bytes <= file_bytes - entry.sections.at);
    before = {name, entry.data};
    may_throw([&] {
      const auto shard = index.open(entry);
      require(shard->record_count() == entry.shard.record_count);
      const std::vector<std::uint64_t> offsets = shard->copy_packed().unpack();
      for (std::uint64_t i = 0; i + 1 < std::min<std::size_t>(offsets.size(), 1000); ++i) {
        const auto [begin, next] = shard->offsets().pair(i);
        require(begin == offsets[i] && next == offsets[i + 1]);
        may_throw([&] {
          const Frame frame = shard->frame(i);
          require(frame.offset + frame.payload_bytes <= shard->facts().stream_bytes);
        });
      }
    });
  }
  require(index.find(before.first + "x").empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static MemoryFile file;
  if (size < 1) return 0;
  Bytes bytes(data + 1, data + size);
  repair(bytes, data[0]);
  file.set(bytes);
  may_throw([&] {
    const auto index = FolderIndex::load(file.path());
    require(index != nullptr);
    look_through(*index, bytes.size());
  });
  return 0;
}
