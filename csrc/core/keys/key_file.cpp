#include "core/keys/key_file.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/base/utf8.h"
#include "core/crc32c/crc32c.h"
#include "core/storage/fault_guard.h"
#include "core/storage/local/local_facts.h"
#include "core/storage/local/sidecar.h"
#include "core/storage/storage.h"

namespace tfrfast {
namespace {

struct KeyHeader {
  char magic[kBeginningBytes];
  std::uint32_t version;
  std::uint32_t kind;
  std::uint64_t record_count;
  std::uint64_t entry_count;
  std::uint64_t distinct_count;
  std::uint64_t fingerprint;
  std::uint64_t stamp;
  std::uint32_t number_bytes;
  std::uint32_t name_bytes;
  std::uint32_t hashes_crc;
  std::uint32_t numbers_crc;
  std::uint32_t zero;
  std::uint32_t header_crc;  // of all bytes before the field, and of the name after the header
};
static_assert(sizeof(KeyHeader) == 80);

constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kBytesKind = 1;
constexpr std::uint32_t kIntsKind = 2;
constexpr std::uint64_t kMaxRecords = std::uint64_t{1} << 32;
constexpr std::uint64_t kPieceBytes = 1 << 20;
constexpr std::size_t kPartKeys = 4096;
constexpr std::size_t kAhead = 16;  // a search's memory is prefetched this many searches ahead

}  // namespace

std::shared_ptr<const KeyFile> KeyFile::open(const std::string& path, const ShardSet& data) {
  // Not std::make_shared: the constructor is private.
  std::shared_ptr<KeyFile> opened(new KeyFile(open_sidecar(path)));
  data.refuse_unless_believed(
      *opened->file_, "The key file",
      "Remove it, or keep your own elsewhere: tfr.build_keys(..., folder=...).");
  opened->read_header();
  opened->read_tables();
  return opened;
}

void KeyFile::read_header() {
  const std::uint64_t bytes = file_->bytes();
  KeyHeader header;
  if (bytes < sizeof header) refuse("it is shorter than its header");
  file_->read(0, reinterpret_cast<std::uint8_t*>(&header), sizeof header);
  if (std::memcmp(header.magic, kKeysMagic, sizeof kKeysMagic) != 0) {
    refuse("it does not begin like a key file");
  }
  if (header.version != kVersion) {
    refuse("it has version " + std::to_string(header.version) + ", and this tfrfast reads " +
           std::to_string(kVersion));
  }
  const std::uint64_t padded_bytes = (std::uint64_t{header.name_bytes} + 7) / 8 * 8;
  if (padded_bytes > bytes - sizeof header) refuse("it is shorter than the name of its feature");
  std::string name(static_cast<std::size_t>(padded_bytes), '\0');
  auto* const name_bytes = reinterpret_cast<std::uint8_t*>(name.data());
  file_->read(sizeof header, name_bytes, name.size());
  const auto* const packed = reinterpret_cast<const std::uint8_t*>(&header);
  std::uint32_t crc = crc32c(packed, offsetof(KeyHeader, header_crc));
  crc = crc32c(name_bytes, name.size(), crc);
  if (crc != header.header_crc) refuse("the checksum of its header does not match");
  tables_at_ = sizeof header + padded_bytes;
  const std::uint64_t entry_bytes = sizeof(std::uint64_t) + header.number_bytes;
  if ((header.kind != kBytesKind && header.kind != kIntsKind) || header.number_bytes < 1 ||
      header.number_bytes > 4 || header.record_count > kMaxRecords ||
      header.entry_count > header.record_count || header.distinct_count > header.entry_count ||
      !is_utf8({name_bytes, header.name_bytes})) {
    refuse("its header makes no sense");
  }
  // At most 2**32 entries of at most 12 bytes: no overflow.
  const std::uint64_t expected = tables_at_ + header.entry_count * entry_bytes;
  if (bytes != expected) {
    refuse("it has " + std::to_string(bytes) + " bytes instead of " + std::to_string(expected));
  }
  name.resize(header.name_bytes);
  feature_ = std::move(name);
  has_ints_ = header.kind == kIntsKind;
  number_bytes_ = header.number_bytes;
  record_count_ = header.record_count;
  entry_count_ = header.entry_count;
  distinct_count_ = header.distinct_count;
  fingerprint_ = header.fingerprint;
  stamp_ = header.stamp;
  hashes_crc_ = header.hashes_crc;
  numbers_crc_ = header.numbers_crc;
}

// Each piece is copied before it is checked.
void KeyFile::read_tables() {
  const std::uint64_t hashes_bytes = entry_count_ * sizeof(std::uint64_t);
  const std::uint64_t numbers_bytes = entry_count_ * number_bytes_;
  const bool is_mapped = file_->mapping() != nullptr;
  if (!is_mapped) {
    const auto words = static_cast<std::size_t>((hashes_bytes + numbers_bytes + 7) / 8);
    owned_.resize(bytes_for<std::uint64_t>(words) / sizeof(std::uint64_t));
  }
  auto* const owned = reinterpret_cast<std::uint8_t*>(owned_.data());
  std::vector<std::uint8_t> piece;
  const auto crc_of = [&](std::uint64_t begin, std::uint64_t bytes) {
    std::uint32_t crc = 0;
    for (std::uint64_t done = 0; done < bytes;) {
      const auto count = static_cast<std::size_t>(std::min(kPieceBytes, bytes - done));
      if (is_mapped) piece.resize(count);
      std::uint8_t* const out = is_mapped ? piece.data() : owned + begin + done;
      file_->read(tables_at_ + begin + done, out, count);
      crc = crc32c(out, count, crc);
      done += count;
    }
    return crc;
  };
  if (crc_of(0, hashes_bytes) != hashes_crc_ ||
      crc_of(hashes_bytes, numbers_bytes) != numbers_crc_) {
    refuse("its checksums do not match");
  }
  const std::uint8_t* const tables = is_mapped ? file_->mapping() + tables_at_ : owned;
  table_ = KeyTable(
      {reinterpret_cast<const std::uint64_t*>(tables), static_cast<std::size_t>(entry_count_)},
      tables + hashes_bytes, number_bytes_);
}

template <class Leaf>
void KeyFile::touch(const Leaf& leaf) const {
  if (!run_guarded(leaf)) throw_mapping_fault(*file_, tables_at_);
}

void KeyFile::refuse_if_changed() const {
  FileFacts now;
  try {
    now = file_->facts_now();
  } catch (const Error&) {
    return;  // the file was removed, and is still mapped
  }
  const FileFacts& then = file_->facts();
  if (!is_same_file(now, then) || (now.bytes == then.bytes && now.mtime_ns == then.mtime_ns))
    return;
  throw Error(ErrorKind::stale_index,
              "The key file '" + file_->path() +
                  "' was changed while it was open. Open it again, or run tfr.build_keys again.",
              {file_->path(), {}, {}});
}

template <class EntryOf>
KeyFile::FoundEntry KeyFile::look_at(std::uint64_t hash, const EntryOf& entry_of) const {
  std::size_t entry = 0;
  bool has_it = false;
  std::int64_t number = 0;
  touch([&] {
    entry = entry_of();
    has_it = table_.has(entry, hash);
    if (has_it) number = table_.number(entry);
  });
  if (!has_it) return {};
  if (static_cast<std::uint64_t>(number) >= record_count_) refuse_number();
  return {entry, static_cast<std::uint64_t>(number)};
}

KeyFile::FoundEntry KeyFile::first(std::uint64_t hash) const {
  return look_at(hash, [&] { return table_.first_entry(hash); });
}

KeyFile::FoundEntry KeyFile::after(std::size_t entry, std::uint64_t hash) const {
  return look_at(hash, [&] { return entry + 1; });
}

void KeyFile::find(std::span<const std::uint64_t> hashes, std::int64_t* numbers) const {
  const std::size_t count = hashes.size();
  const auto limit = static_cast<std::int64_t>(record_count_);
  std::atomic<bool> all_exist{true};
  parallel_for(count / kPartKeys + 1, count < 4 * kPartKeys ? 1 : usable_processors(),
               [&](std::size_t part) {
                 const std::size_t end = std::min(count, (part + 1) * kPartKeys);
                 bool exist = true;
                 touch([&] {
                   for (std::size_t i = part * kPartKeys; i < end; ++i) {
                     if (i + kAhead < end) table_.prefetch(hashes[i + kAhead]);
                     const std::size_t entry = table_.first_entry(hashes[i]);
                     numbers[i] = table_.has(entry, hashes[i]) ? table_.number(entry) : -1;
                     exist &= numbers[i] < limit;
                   }
                 });
                 if (!exist) all_exist = false;
               });
  if (!all_exist) refuse_number();
  refuse_if_changed();
}

void KeyFile::copy_entries(std::size_t first, std::span<std::uint64_t> hashes,
                           std::int64_t* numbers) const {
  const auto limit = static_cast<std::int64_t>(record_count_);
  bool exist = true;
  touch([&] {
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      hashes[i] = table_.hash(first + i);
      if (numbers == nullptr) continue;
      numbers[i] = table_.number(first + i);
      exist &= numbers[i] < limit;
    }
  });
  if (!exist) refuse_number();
  refuse_if_changed();
}

void KeyFile::refuse(const std::string& why) const {
  throw Error(
      ErrorKind::corrupt,
      "'" + file_->path() + "' is not an intact key file: " + why + ". Run tfr.build_keys again.",
      {file_->path(), {}, {}});
}

void KeyFile::refuse_number() const {
  refuse_if_changed();
  refuse("it has the number of a record that does not exist");
}

}  // namespace tfrfast
