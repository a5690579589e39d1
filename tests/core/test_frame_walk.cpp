#include <doctest/doctest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <limits>

#include "core/index/frame_walk.h"
#include "core/shard/framing.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

struct Fixture {
  TemporaryFolder folder;
  TestShard shard{folder / "shard"};

  WalkedFrames walk(IoMode io) const { return walk_shard(StoredFile::open(shard.path(), io)); }
};

std::string header_of(std::uint64_t payload_bytes) {
  std::string header(kHeaderBytes, '\0');
  encode_header(payload_bytes, reinterpret_cast<std::uint8_t*>(header.data()));
  return header;
}

void check_damage(const Damage& damage, DamageKind kind, std::uint64_t begin, std::uint64_t end,
                  std::uint64_t before, std::uint64_t lost) {
  CHECK(damage.kind == kind);
  CHECK(damage.begin == begin);
  CHECK(damage.end == end);
  CHECK(damage.records_before == before);
  CHECK(damage.records_lost == lost);
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "frame walk: damage is got over across windows of the walk") {
  // The next good frame is megabytes after the damage, near the edges of windows.
  for (const std::size_t hole : {(1 << 20) - 30, (1 << 20) - 12, (1 << 20) - 1, 1 << 20, 3 << 20}) {
    CAPTURE(hole);
    TestShard wide(folder / "wide");
    wide.write_record("first").write_record(payload(hole)).write_record("third").write_record("");
    wide.flip_bit(wide.offset(1) + 2);
    FOR_EACH_IO(io) {
      const WalkedFrames found = walk_shard(StoredFile::open(wide.path(), io));
      CHECK(found.offsets.unpack() ==
            std::vector<std::uint64_t>{0, wide.offset(2), wide.offset(3), wide.size()});
    }
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "frame walk: a shard full of false headers is given up, not searched for ever") {
  // Each header promises a payload that ends shortly before the shard's end, where no frame begins.
  constexpr std::uint64_t kBytes = 8 << 20;
  shard.write_record("good").write_record("bad").flip_bit(shard.offset(1));
  std::string hostile;
  for (std::uint64_t at = shard.size(); at + 100 < kBytes; at += kHeaderBytes) {
    hostile += header_of(kBytes - 50 - kFrameOverhead - at);
  }
  shard.append(hostile);
  shard.append(std::string(kBytes - shard.size(), '\0'));
  shard.append(frame_of("not found"));
  FOR_EACH_IO(io) {
    const WalkedFrames found = walk(io);
    CHECK(found.offsets.unpack() == std::vector<std::uint64_t>{0, shard.offset(1)});
    REQUIRE(found.damage.size() == 1);
    check_damage(found.damage[0], DamageKind::lost_track, shard.offset(1), shard.size(), 1, 0);
  }
}

TEST_CASE_FIXTURE(Fixture, "frame walk: false headers that cost little are got over") {
  shard.write_record("bad").flip_bit(8);
  for (int i = 0; i < 1000; ++i) shard.append(header_of(30));
  shard.append(std::string(60, 'x'));
  const std::uint64_t good = shard.size();
  shard.append(frame_of("good"));
  FOR_EACH_IO(io) {
    // By chance, none of the thousand headers is followed by another header 46 bytes later.
    CHECK(walk(io).offsets.unpack() == std::vector<std::uint64_t>{good, shard.size()});
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "frame walk: headers that promise too much are torn tails or no headers") {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  shard.write_record("good");
  const std::uint64_t begin = shard.size();
  for (const std::uint64_t length : {kMax, kMax - 15, kMax / 2, std::uint64_t{1} << 40}) {
    TestShard torn(folder / "torn");
    torn.write_record("good").append(header_of(length)).append(payload(100));
    FOR_EACH_IO(io) {
      const WalkedFrames found = walk_shard(StoredFile::open(torn.path(), io));
      REQUIRE(found.damage.size() == 1);
      check_damage(found.damage[0], DamageKind::torn_payload, begin, torn.size(), 1, 1);
    }
    // The search for the next frame skips such a header.
    torn.flip_bit(8).append(frame_of("last"));
    FOR_EACH_IO(io) {
      CHECK(walk_shard(StoredFile::open(torn.path(), io)).offsets.count == 2);
    }
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "frame walk: many tiny frames before a huge one cost no memory in advance") {
  shard.write_records(70'000, 0);
  const std::uint64_t huge = std::uint64_t{1} << 42;  // sparse
  shard.append(header_of(huge - kFrameOverhead));
  const auto bytes = static_cast<off_t>(shard.size() - kHeaderBytes + huge);
  // Filesystems with small blocks have no such large files.
  if (::truncate(shard.path().c_str(), bytes) != 0 && errno == EFBIG) return;
  REQUIRE(static_cast<off_t>(std::filesystem::file_size(shard.path())) == bytes);
  FOR_EACH_IO(io) {
    const WalkedFrames found = walk(io);
    CHECK(found.offsets.unpack().size() == 70'002);
    CHECK(found.offsets.residuals.capacity() < 1'000'000);
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "frame walk: progress adds up to the shard, damaged or not, and may stop it") {
  shard.write_records(20'000, 40);
  for (const bool damaged : {false, true}) {
    if (damaged) shard.flip_bit(shard.offset(10'000) + 8).truncate_to(shard.size() - 3);
    FOR_EACH_IO(io) {
      std::uint64_t done = 0;
      walk_shard(StoredFile::open(shard.path(), io), [&](std::uint64_t bytes) { done += bytes; });
      CHECK(done == shard.size());
      CHECK_THROWS_AS(
          walk_shard(StoredFile::open(shard.path(), io), [](std::uint64_t) { throw 1; }), int);
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "frame walk: a long search tells how far it is, and may be ended") {
  // Among zeros, which hold no header, and among false headers, whose payloads are read.
  constexpr std::size_t kSearched = 8 << 20;
  std::string false_headers;
  for (int i = 0; i < 30; ++i) false_headers += header_of(kSearched / 2);
  for (const std::string& first : {std::string(), false_headers}) {
    TestShard damaged(folder / "long");
    damaged.write_record("good").append(std::string("x") + first);
    damaged.append(std::string(kSearched, '\0'));
    FOR_EACH_IO(io) {
      const auto file = StoredFile::open(damaged.path(), io);
      std::uint64_t calls = 0, done = 0;
      walk_shard(file, [&](std::uint64_t bytes) { ++calls, done += bytes; });
      CHECK(calls >= 8);
      CHECK(done == damaged.size());
      for (const std::uint64_t last : {std::uint64_t{1}, calls / 2, calls}) {
        std::uint64_t call = 0;
        const auto end_it = [&](std::uint64_t) {
          if (++call == last) throw 1;
        };
        CHECK_THROWS_AS(walk_shard(file, end_it), int);
      }
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "frame walk: told to stop at damage, it looks little further") {
  shard.write_records(5, 50).flip_bit(shard.offset(2) + 9);
  const auto walk_and_stop = [&](IoMode io) {
    return walk_shard(StoredFile::open(shard.path(), io), nullptr, Compression::none,
                      AtDamage::stop);
  };
  FOR_EACH_IO(io) {
    const WalkedFrames found = walk_and_stop(io);
    CHECK(!found.is_whole);
    CHECK(found.offsets.unpack() ==
          std::vector<std::uint64_t>{0, shard.offset(1), shard.offset(2)});
    REQUIRE(found.damage.size() == 1);
    check_damage(found.damage[0], DamageKind::bad_header, shard.offset(2), shard.offset(3), 2, 1);
  }
  shard.insert(shard.offset(3), std::string(3 << 20, '\0'));
  FOR_EACH_IO(io) {
    const WalkedFrames found = walk_and_stop(io);
    REQUIRE(found.damage.size() == 1);
    check_damage(found.damage[0], DamageKind::unexplored, shard.offset(2),
                 shard.offset(2) + 1 + (1 << 20), 2, 0);
  }
  shard.truncate_to(shard.offset(2) + 1000);
  FOR_EACH_IO(io) {
    const WalkedFrames found = walk_and_stop(io);
    REQUIRE(found.damage.size() == 1);
    check_damage(found.damage[0], DamageKind::bad_header, shard.offset(2), shard.size(), 2, 0);
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "frame walk: told to stop at damage, it reads few false headers' payloads") {
  // A MiB of headers, each of which promises half a MiB. Reading all payloads would mean 80 GB.
  constexpr std::uint64_t kPromised = (512 << 10) + 1;
  shard.write_record("bad").flip_bit(8);
  std::string hostile;
  while (hostile.size() < 1 << 20) hostile += header_of(kPromised);
  shard.append(hostile).append(std::string(4 << 20, 'x'));
  FOR_EACH_IO(io) {
    std::uint64_t calls = 0;
    const WalkedFrames found = walk_shard(
        StoredFile::open(shard.path(), io), [&](std::uint64_t) { ++calls; }, Compression::none,
        AtDamage::stop);
    REQUIRE(found.damage.size() == 1);
    CHECK(found.damage[0].kind == DamageKind::unexplored);
    CHECK(calls < 1000);  // each call stands for at most a MiB
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "frame walk: told to stop, it goes on to the end of what is not damaged") {
  shard.write_records(100, 50);
  for (const bool torn : {false, true}) {
    if (torn) shard.truncate_to(shard.size() - 3);
    FOR_EACH_IO(io) {
      const auto file = StoredFile::open(shard.path(), io);
      const WalkedFrames whole = walk_shard(file);
      const WalkedFrames stopped = walk_shard(file, nullptr, Compression::none, AtDamage::stop);
      CHECK(stopped.is_whole);
      CHECK(stopped.offsets.unpack() == whole.offsets.unpack());
      CHECK(stopped.damage.size() == whole.damage.size());
    }
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "frame walk: a shard that shrinks meanwhile is a failure, never damage") {
  shard.write_records(20'000, 100);
  for (const bool damaged : {false, true}) {
    // With a bad header before the cut, the fault comes during the search for the next frame.
    if (damaged) shard.flip_bit(shard.offset(1) + 8).erase(shard.offset(2), shard.size() - 1);
    const std::string whole = damaged ? shard.bytes() + payload(1 << 20) : shard.bytes();
    FOR_EACH_IO(io) {
      write_file(shard.path(), whole);
      const auto file = StoredFile::open(shard.path(), io);
      REQUIRE(::truncate(shard.path().c_str(), 0) == 0);
      CHECK(error_of([&] { walk_shard(file); }).kind() == ErrorKind::truncated);
      write_file(shard.path(), whole);
      const auto cut_later = StoredFile::open(shard.path(), io);
      REQUIRE(::truncate(shard.path().c_str(), 4096) == 0);
      CHECK(error_of([&] { walk_shard(cut_later); }).kind() == ErrorKind::truncated);
    }
  }
}
