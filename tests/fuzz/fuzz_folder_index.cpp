// The index of a folder, of any bytes: it is refused, or what it holds is inside of it.
#include <algorithm>
#include <cstring>
#include <string>
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
constexpr std::size_t kEntrySize = 160;

void seal(Bytes& index, std::size_t crc_at, std::uint64_t from, std::uint64_t bytes) {
  store_little_endian<std::uint32_t>(&index[crc_at], crc32c(index.data() + from, bytes));
}

// Gives any bytes the right checksums, so that more than these is tested.
void repair(Bytes& index, std::uint8_t how) {
  if (index.size() < kHeaderSize) return;
  if (how & 1) {
    std::memcpy(index.data(), "TFRFSET\n", 8);
    store_little_endian<std::uint32_t>(&index[8], 1);
    store_little_endian<std::uint64_t>(&index[16], index.size());
  }
  const auto field = [&index](std::size_t at) {
    return load_little_endian<std::uint64_t>(index.data() + at);
  };
  if (how & 2) {
    const std::uint64_t left = index.size() - kHeaderSize;
    store_little_endian<std::uint64_t>(&index[24], field(24) % (left / kEntrySize + 1));
    store_little_endian<std::uint64_t>(&index[32], field(32) % (left + 1) / 8 * 8);
  }
  if ((how & 4) && field(32) <= index.size() - kHeaderSize) {
    seal(index, 12, kHeaderSize, field(32));
  }
  if (how & 8) seal(index, 60, 0, 60);
}

void look_through(const FolderIndex& index, std::uint64_t file_bytes) {
  std::string before;
  for (const DirectoryEntry& entry : index.entries()) {
    const std::string name(index.name_of(entry));
    require(name > before);
    require(index.find(name) == &entry);
    require(entry.sections.at >= kHeaderSize && entry.sections.at <= file_bytes &&
            entry.sections.bytes <= file_bytes - entry.sections.at);
    before = name;
    may_throw([&] {
      const auto shard = index.open(entry);
      require(shard->record_count() == entry.shard.record_count);
      const std::vector<std::uint64_t> offsets = shard->copy_offsets();
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
  require(index.find(before + "x") == nullptr);
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
