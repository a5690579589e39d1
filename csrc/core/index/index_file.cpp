#include "core/index/index_file.h"

#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "core/index/index_bytes.h"
#include "core/index/index_format.h"
#include "core/index/index_sections.h"
#include "core/storage/local/in_place.h"
#include "core/storage/storage.h"

namespace tfrfast {

void write_index(const ShardIndex& index, Publication& file) {
  const IndexSections sections = sections_of(index, sizeof(IndexHeader));
  IndexHeader header = {};
  std::memcpy(header.magic, kIndexMagic, sizeof kIndexMagic);
  header.version = kIndexVersion;
  header.shard = sections.shard;
  header.index_bytes = sizeof header + sections.bytes.size();
  header.header_crc = crc_of(header);
  file.append(&header, sizeof header);
  file.append(sections.bytes.data(), sections.bytes.size());
}

bool begins_like_index(const std::string& path) noexcept {
  char bytes[sizeof kIndexMagic];
  return peek(path, bytes, sizeof bytes) &&
         (std::memcmp(bytes, kIndexMagic, sizeof kIndexMagic) == 0 ||
          std::memcmp(bytes, kProofMagic, sizeof kProofMagic) == 0);
}

void save_index(const ShardIndex& index, const std::string& path, bool durable, Existing existing) {
  const auto file = publish_file(path);
  write_index(index, *file);
  commit_own_file(*file, durable, existing);
}

std::shared_ptr<const ShardIndex> load_index(const std::string& path, Writers* writers,
                                             const std::string& access) {
  std::shared_ptr<const IndexBytes> bytes;
  IndexHeader header = {};
  for (;;) {
    try {
      bytes = std::make_shared<const IndexBytes>(path, access);
    } catch (const Error& error) {
      if (error.system_error() == ENOENT || error.system_error() == ENOTDIR) return nullptr;
      throw;
    }
    if (writers != nullptr) *writers = bytes->writers();
    if (bytes->size() < sizeof header) refuse_index(path, "it is shorter than an index's header.");
    const IndexHeader before = header;
    header = bytes->copy<IndexHeader>(0, 1).front();
    if (std::memcmp(header.magic, kIndexMagic, sizeof kIndexMagic) != 0) {
      refuse_index(path, "it does not begin like an index of tfrfast.");
    }
    if (header.version != kIndexVersion) {
      refuse_index(path, "it has version " + std::to_string(header.version) +
                             " and this tfrfast reads version " + std::to_string(kIndexVersion) +
                             ".");
    }
    if (header.header_crc == crc_of(header)) break;
    // stamp_index() may be changing it at this moment. If so, it differs the next time.
    if (std::memcmp(&before, &header, sizeof header) == 0) {
      refuse_index(path, "its header does not match its checksum.");
    }
  }
  if (header.index_bytes != bytes->size()) refuse_index(path, "it was cut short.");
  return load_sections(bytes, header.shard, header.header_crc);
}

}  // namespace tfrfast
