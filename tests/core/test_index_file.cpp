#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/base/bytes.h"
#include "core/crc32c/crc32c.h"
#include "saved_index.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

// The places that docs/index-format.md specifies, in a file of one part with one shard.
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kPartAt = 64;
constexpr std::size_t kDirectoryCrcAt = kPartAt + 32;
constexpr std::size_t kPartCrcAt = kPartAt + 36;
constexpr std::size_t kEntryAt = kPartAt + 40;
constexpr std::size_t kCompressionAt = kEntryAt + 40;
constexpr std::size_t kStreamBytesAt = kEntryAt + 48;
constexpr std::size_t kRecordCountAt = kEntryAt + 56;
constexpr std::size_t kOffsetsAt = kEntryAt + 64;
constexpr std::size_t kOffsetsBytesAt = kEntryAt + 72;
constexpr std::size_t kDamageAt = kEntryAt + 80;
constexpr std::size_t kDamageBytesAt = kEntryAt + 88;
constexpr std::size_t kSectionsAt = kEntryAt + 168;

std::uint8_t* bytes_of(std::string& text) {
  return reinterpret_cast<std::uint8_t*>(text.data());
}

template <class T>
std::string with_field(std::string file, std::size_t at, T value) {
  std::uint8_t* const bytes = bytes_of(file);
  store_little_endian<T>(bytes + at, value);
  store_little_endian<std::uint32_t>(bytes + kDirectoryCrcAt,
                                     crc32c(bytes + kEntryAt, kSectionsAt - kEntryAt));
  store_little_endian<std::uint32_t>(bytes + kPartCrcAt,
                                     crc32c(bytes + kPartAt, kPartCrcAt - kPartAt));
  return file;
}

struct Fixture {
  TemporaryFolder folder;
  std::string path = folder / "index";

  ShardIndex damaged_index() const {
    return ShardIndex(
        {300, 12345, 300, Compression::none, {{6, 7, std::uint64_t(-89)}}, true, true},
        {0, 20, 60, 100, 150},
        {{DamageKind::bad_header, 40, 60, 2, 1}, {DamageKind::torn_payload, 150, 300, 4, 1}});
  }
  std::string saved(const ShardIndex& index) const {
    save_index(index, path);
    return read_file(path);
  }
  std::string refusal_of(const std::string& bytes) const {
    write_file(path, bytes);
    const Error error = error_of([&] { load_index(path); });
    CHECK(error.kind() == ErrorKind::stale_index);
    CHECK(error.place().path == path);
    CHECK(holds(error.message(), "'" + path + "' cannot be used"));
    CHECK(holds(error.message(), "tfrfast index --force"));
    return error.message();
  }
};

ShardIndex large_index(std::size_t records) {
  std::vector<std::uint64_t> offsets(records + 1);
  for (std::size_t i = 0; i <= records; ++i) offsets[i] = 100 * i;
  return ShardIndex({100 * records, 1, 100 * records, Compression::none}, std::move(offsets), {});
}

// An index whose residuals are not all zero.
ShardIndex uneven_index(std::size_t records) {
  std::vector<std::uint64_t> offsets(records + 1);
  for (std::size_t i = 0; i <= records; ++i) offsets[i] = 100 * i + (i == records ? 0 : i * i % 23);
  return ShardIndex({100 * records, 1, 100 * records, Compression::none}, offsets, {});
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "index file: one that is not there is null, not an error") {
  CHECK(load_index(path) == nullptr);
  CHECK(load_index(folder / "no/such/folder/index") == nullptr);
  write_file(path, "");
  CHECK(load_index(path + "/below") == nullptr);
}

TEST_CASE_FIXTURE(Fixture, "index file: every flipped bit is refused or noticed when touched") {
  for (const bool large : {false, true}) {
    const ShardIndex index = large ? uneven_index(10'000) : damaged_index();
    const std::vector<std::uint64_t> offsets = index.copy_packed().unpack();
    const std::string good = saved(index);
    write_file(path, good);
    for (std::size_t at = 0; at < good.size(); ++at) {
      // In place: a file system may wait for the disk when a truncated file is closed.
      const auto put = [&](int byte) {
        std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
        file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(byte));
        file.close();
        REQUIRE(file);
      };
      put(good[at] ^ (1 << at % 8));
      bool noticed = false;
      try {
        noticed = load_index(path)->copy_packed().unpack() != offsets;
        CHECK_FALSE(noticed);  // wrong entries must never come out
      } catch (const Error& error) {
        noticed = error.kind() == ErrorKind::stale_index;
      }
      CAPTURE(at);
      REQUIRE(noticed);
      put(good[at]);
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "index file: every truncation is refused") {
  for (const bool large : {false, true}) {
    const std::string good = saved(large ? uneven_index(10'000) : damaged_index());
    for (std::size_t size = 0; size < good.size(); size += large ? 97 : 1) {
      CAPTURE(size);
      refusal_of(good.substr(0, size));
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "index file: the refusal says what is wrong") {
  const std::string good = saved(damaged_index());
  CHECK(holds(refusal_of("short"), "shorter than an index's header"));
  CHECK(holds(refusal_of(std::string(500, 'x')), "does not begin like the index of a folder"));
  std::string flipped = good;
  flipped[20] ^= 1;
  CHECK(holds(refusal_of(flipped), "header does not match its checksum"));
  CHECK(holds(refusal_of(with_field<std::uint32_t>(good, kVersionAt, 7)),
              "has version 7 and this tfrfast reads version 2"));
  flipped = good;
  flipped[kEntryAt] ^= 1;
  CHECK(holds(refusal_of(flipped), "its directory is damaged"));
  flipped = good;
  flipped[kSectionsAt] ^= 1;
  CHECK(holds(refusal_of(flipped), "list of damage does not match"));
  flipped = good;
  flipped[kSectionsAt + 80] ^= 1;
  CHECK(holds(refusal_of(flipped), "list of checksums does not match"));
}

TEST_CASE_FIXTURE(Fixture, "index file: an entry that lies with a good checksum is refused") {
  const std::string good = saved(damaged_index());
  constexpr std::uint64_t kMax = ~std::uint64_t{0};
  for (const std::uint64_t value : {kMax, kMax - 1, kMax / 2, kMax / 8 + 1, std::uint64_t{1000},
                                    std::uint64_t{4096}, std::uint64_t{1} << 32}) {
    CAPTURE(value);
    for (const std::size_t field :
         {kRecordCountAt, kOffsetsAt, kOffsetsBytesAt, kDamageAt, kDamageBytesAt, kStreamBytesAt}) {
      CAPTURE(field);
      refusal_of(with_field(good, field, value));
    }
  }
  refusal_of(with_field<std::uint64_t>(good, kOffsetsAt, 81));  // not aligned
  refusal_of(with_field<std::uint32_t>(good, kCompressionAt, 3));
}

TEST_CASE_FIXTURE(Fixture, "index file: one that leaves out a part of its shard is refused") {
  using Offsets = std::vector<std::uint64_t>;
  using DamageList = std::vector<Damage>;
  constexpr DamageKind kBad = DamageKind::bad_header;
  const auto loads = [&](const Offsets& offsets, const DamageList& damage, std::uint64_t bytes) {
    const ShardIndex index({bytes, 1, bytes, Compression::none}, offsets, damage);
    const std::string saved_bytes = saved(index);
    if (index.covers_shard()) return load_index(path) != nullptr;
    CHECK(holds(refusal_of(saved_bytes), "do not add up to its shard"));
    return false;
  };
  CHECK(loads({0, 20, 40}, {}, 40));
  CHECK(loads({0}, {}, 0));
  CHECK(loads({0}, {{kBad, 0, 40, 0, 0}}, 40));
  CHECK(loads({0, 20, 40}, {{kBad, 40, 50, 2, 0}}, 50));
  CHECK(loads({10, 30, 50}, {{kBad, 0, 10, 0, 0}}, 50));
  CHECK(loads({0, 30, 50}, {{kBad, 20, 30, 1, 0}}, 50));
  CHECK(loads({0, 20}, {{kBad, 20, 30, 1, 0}, {DamageKind::torn_header, 30, 33, 1, 1}}, 33));
  CHECK(loads({0, 20}, {{DamageKind::torn_stream, 20, 20, 1, 0}}, 20));

  // The last, the first, or the middle records are missing.
  CHECK_FALSE(loads({0, 20, 40}, {}, 60));
  CHECK_FALSE(loads({0, 20, 40}, {}, 39));
  CHECK_FALSE(loads({0}, {}, 40));
  CHECK_FALSE(loads({20, 40, 60}, {}, 60));
  CHECK_FALSE(loads({20}, {{kBad, 0, 40, 0, 0}}, 40));
  CHECK_FALSE(loads({0, 20, 40}, {{kBad, 40, 50, 2, 0}}, 60));
  CHECK_FALSE(loads({0, 20, 40}, {{kBad, 45, 60, 2, 0}}, 60));
  CHECK_FALSE(loads({10, 30, 50}, {{kBad, 0, 9, 0, 0}}, 50));
  CHECK_FALSE(loads({0, 30, 50}, {{kBad, 20, 29, 1, 0}}, 50));
  CHECK_FALSE(loads({0, 30, 50}, {{kBad, 15, 30, 1, 0}}, 50));
  // Damage in the wrong order, damage after more records than exist, and overlapping damage.
  CHECK_FALSE(loads({0, 30, 60}, {{kBad, 50, 60, 2, 0}, {kBad, 20, 30, 1, 0}}, 60));
  CHECK_FALSE(loads({0, 20, 40}, {{kBad, 40, 60, 3, 0}}, 60));
  CHECK_FALSE(loads({0, 20}, {{kBad, 20, 50, 1, 0}, {kBad, 40, 60, 1, 0}}, 60));
}

TEST_CASE_FIXTURE(Fixture,
                  "index file: records that begin inside others are refused when touched") {
  constexpr std::size_t kPage = PackedOffsets::kPageOffsets;
  constexpr std::size_t kBlock = PackedOffsets::kBlockOffsets;
  // Inside a block, and at the end of a block or a page.
  for (const std::size_t wrong :
       {std::size_t{1}, std::size_t{7000}, kBlock - 1, kBlock, kPage - 1, kPage}) {
    for (const std::int64_t moved : {-100, -85, 85, 99, 100, 5000}) {
      CAPTURE(wrong);
      CAPTURE(moved);
      std::vector<std::uint64_t> offsets = large_index(10'000).copy_packed().unpack();
      offsets[wrong] += static_cast<std::uint64_t>(moved);
      saved(ShardIndex({1'000'000, 1, 1'000'000, Compression::none}, offsets, {}));
      const Error error = error_of([&] { load_index(path)->copy_packed().unpack(); });
      CHECK(error.kind() == ErrorKind::stale_index);
      CHECK(error.place().path == path);
      CHECK(holds(error.message(), "some begin inside others"));
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "index file: one that is truncated while mapped is noticed, not fatal") {
  const std::size_t records = 200'000;
  saved(uneven_index(records));
  const auto loaded = load_index(path);
  CHECK(loaded->frame(0).payload_bytes == 85);
  REQUIRE(::truncate(path.c_str(), 4096) == 0);
  for (const std::size_t number : {std::size_t{40'000}, std::size_t{50'000}, records - 1}) {
    const Error error = error_of([&] { loaded->frame(number); });
    CHECK(error.kind() == ErrorKind::stale_index);
    CHECK(holds(error.message(), "can no longer be read"));
  }
}

TEST_CASE_FIXTURE(Fixture, "index file: what is not a file is an error that says so") {
  CHECK(error_of([&] { load_index(folder.path()); }).system_error() == EISDIR);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(error_of([&] { load_index(path); }).kind() == ErrorKind::stale_index);
}
