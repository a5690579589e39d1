#include "core/codec/inflated_file.h"
#include "core/index/damage_in_words.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "announced_bytes.h"
#include "core/codec/deflater.h"
#include "core/index/frame_walk.h"
#include "saved_index.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

std::string deflated(const std::string& bytes, Compression compression, int level = 6) {
  Deflater deflater(codec_of(compression).window_bits, level);
  const auto out =
      deflater.deflate({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

// A plain shard of 4 MiB, and the same shard compressed.
struct Fixture {
  TemporaryFolder folder;
  Environment cache{"TFRFAST_CACHE_DIR", folder / "cache"};
  TestShard plain{folder / "plain"};
  std::string path = folder / "packed";

  Fixture() { plain.write_records(4000, 1000); }
  IndexedShard pack(Compression compression, IoMode io = IoMode::mapped) {
    write_file(path, deflated(plain.bytes(), compression));
    IndexedShard shard = open_indexed(path, io, {IndexUse::memory, "", {}});
    shard.file = as_indexed(StoredFile::open(path, io), *shard.index);  // without the walk's spans
    return shard;
  }
};

// A file whose storage is far away.
class FakeRemoteFile final : public StoredFile {
 public:
  explicit FakeRemoteFile(std::string bytes)
      : StoredFile("remote://bucket/object", FileFacts{.bytes = bytes.size()}, kTraits),
        bytes_(std::move(bytes)) {
    announced.reset(bytes_.size());
  }

  using StoredFile::read;
  void read(std::span<const ReadRange> ranges) const override {
    for (const ReadRange& each : ranges) {
      std::memcpy(each.out, bytes_.data() + each.offset, each.bytes);
      announced.read(each.offset, each.bytes);
    }
  }
  std::unique_ptr<Announcement> announce(std::span<const FileRange> ranges,
                                         Reads reads) const noexcept override {
    return announced.announce(ranges, reads);
  }

 private:
  static constexpr StorageTraits kTraits{true, 1 << 10, 1 << 20, 2, 2 << 20};
  const std::string bytes_;

 public:
  mutable AnnouncedBytes announced;
};

std::string read(const StoredFile& file, std::uint64_t offset, std::size_t count) {
  std::string bytes(count, '\0');
  file.read(offset, reinterpret_cast<std::uint8_t*>(bytes.data()), count);
  return bytes;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "inflated file: bytes are those of the stream, wherever one begins") {
  for (const Compression compression : {Compression::gzip, Compression::zlib}) {
    FOR_EACH_IO(io) {
      const IndexedShard shard = pack(compression, io);
      CHECK(shard.file->is_inflated());
      CHECK(shard.file->mapping() == nullptr);
      REQUIRE(shard.file->bytes() == plain.size());
      CHECK(shard.index->seek_points()->size() >= 3);
      for (std::uint64_t at = plain.size(); at > 100'000; at -= 99'991) {
        const auto count = std::min<std::size_t>(150'000, plain.size() - at);
        CHECK(read(*shard.file, at, count) == plain.bytes().substr(at, count));
      }
      CHECK_THROWS_AS(read(*shard.file, plain.size() - 1, 2), Error);
      CHECK(read(*shard.file, plain.size(), 0).empty());
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "inflated file: seek points survive being saved") {
  const IndexedShard shard = pack(Compression::gzip);
  save_index(*shard.index, folder / "index");
  const auto loaded = load_index(folder / "index");
  REQUIRE(loaded->seek_points()->size() == shard.index->seek_points()->size());
  const auto again = as_indexed(StoredFile::open(path), *loaded);
  CHECK(read(*again, 0, plain.size()) == plain.bytes());
}

TEST_CASE_FIXTURE(Fixture, "inflated file: many threads read the same spans") {
  const IndexedShard shard = pack(Compression::zlib);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (unsigned thread = 0; thread < 6; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t turn = 0; turn < 60; ++turn) {
        const std::uint64_t at = (turn * 64 + thread * 7'777) * 997 % (plain.size() - 5000);
        wrong += read(*shard.file, at, 5000) != plain.bytes().substr(at, 5000);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE_FIXTURE(Fixture, "inflated file: a forked child reads on") {
  const IndexedShard shard = pack(Compression::gzip);
  CHECK(read(*shard.file, 10, 10) == plain.bytes().substr(10, 10));
  CHECK(run_in_child([&] {
          return read(*shard.file, 10, 3'000'000) == plain.bytes().substr(10, 3'000'000) ? 0 : 1;
        }) == 0);
}

TEST_CASE_FIXTURE(Fixture, "inflated file: a file that changed since is noticed by its spans") {
  write_file(path, deflated(plain.bytes(), Compression::gzip));
  const IndexedShard shard = open_indexed(path, IoMode::pread, {IndexUse::memory, "", {}});
  std::string bytes = read_file(path);
  for (std::size_t at = bytes.size() / 2; at < bytes.size() / 2 + 4000; ++at) bytes[at] ^= 0x55;
  write_file(path, bytes);
  const auto again = as_indexed(StoredFile::open(path), *shard.index);
  const Error error = error_of([&] { read(*again, 0, plain.size()); });
  CHECK(error.kind() == ErrorKind::stale_index);
  CHECK(holds(error.message(), "of the uncompressed stream"));
  CHECK(holds(error.message(), "tfrfast index --force"));
  // The walk has kept its spans.
  CHECK(read(*shard.file, 0, plain.size()) == plain.bytes());
}

TEST_CASE_FIXTURE(Fixture, "inflated file: it goes on with the next member that is whole") {
  const auto part = [&](std::size_t begin, std::size_t end) {
    const std::uint64_t from = plain.offset(begin);
    const std::uint64_t to = end == plain.records() ? plain.size() : plain.offset(end);
    return plain.bytes().substr(from, to - from);
  };
  const std::string first = part(0, 1500), second = part(1500, 2500), third = part(2500, 4000);
  std::string garbled = deflated(second, Compression::gzip);
  garbled.erase(garbled.size() / 2, 100);
  write_file(path, deflated(first, Compression::gzip) + garbled +
                       deflated(third, Compression::gzip) + "no member");
  FOR_EACH_IO(io) {
    const IndexedShard shard = open_indexed(path, io, {IndexUse::memory, "", {}});
    const std::span<const Damage> damage = shard.index->damage();
    // Garbled data inflate to some bytes before the error is found, and these bytes may contain a
    // bad header.
    const auto gap = std::find_if(damage.begin(), damage.end(), [](const Damage& each) {
      return each.kind == DamageKind::bad_stream;
    });
    REQUIRE(gap != damage.end());
    const std::uint64_t good = shard.index->record_count();
    CHECK(gap->records_before >= 1500);
    CHECK(gap->records_before < 2500);
    CHECK(good == gap->records_before + 1500);
    CHECK(damage.back().kind == DamageKind::bad_stream);
    CHECK(damage.back().records_before == good);
    const Error error = error_of([&] { throw_damage(shard, *gap); });
    CHECK(holds(error.message(), "The next good record begins at"));

    save_index(*shard.index, folder / "index");
    const auto loaded = load_index(folder / "index");
    REQUIRE(loaded->record_count() == good);
    const IndexedShard again{as_indexed(StoredFile::open(path, io), *loaded), loaded, false, {}};
    const Reader reader(std::make_shared<const ShardSet>(std::vector{again}),
                        {Verify::full, true, 1});
    const std::vector<std::string> records = read_all(reader);
    REQUIRE(records.size() > 3000);
    REQUIRE(records.size() <= good);
    for (std::size_t number = 0; number < 1500; ++number) {
      REQUIRE(records[number] == plain.record(number));
      REQUIRE(records[records.size() - 1 - number] == plain.record(3999 - number));
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "inflated file: what is cut off or garbled is damage at the end") {
  const std::string whole = deflated(plain.bytes(), Compression::gzip);
  for (const bool cut : {true, false}) {
    std::string bytes = whole;
    if (cut) bytes.resize(bytes.size() - 5);
    if (!cut) bytes[bytes.size() - 7] ^= 1;
    write_file(path, bytes);
    const IndexedShard shard = open_indexed(path, IoMode::mapped, {IndexUse::memory, "", {}});
    CHECK(shard.index->record_count() == plain.records());
    REQUIRE(shard.index->damage().size() == 1);
    const Damage& damage = shard.index->damage()[0];
    CHECK(damage.kind == (cut ? DamageKind::torn_stream : DamageKind::bad_stream));
    const Error error = error_of([&] { throw_damage(shard, damage); });
    CHECK(error.kind() == (cut ? ErrorKind::truncated : ErrorKind::corrupt));
    CHECK(holds(error.message(), "of the file"));
  }
}

TEST_CASE_FIXTURE(Fixture, "inflated file: of a remote one, each span is asked for once") {
  const IndexedShard shard = pack(Compression::gzip);
  const auto remote = std::make_shared<FakeRemoteFile>(read_file(path));
  const auto inflated = as_indexed(remote, *shard.index);
  std::vector<FileRange> records;
  for (std::size_t number = 0; number < plain.records(); number += 7) {
    records.push_back({plain.offset(number), 1000});
  }
  std::mt19937 random(3);
  std::shuffle(records.begin(), records.end(), random);
  const std::span<const FileRange> all(records);
  const auto read_all_of = [&](std::span<const FileRange> ranges) {
    for (const FileRange& each : ranges) {
      // A frame is read in parts.
      CHECK(read(*inflated, each.offset, 12) + read(*inflated, each.offset + 12, 988) ==
            plain.bytes().substr(each.offset, 1000));
    }
  };
  {
    const auto held = inflated->announce(all);
    CHECK(remote->announced.awaited() >= static_cast<std::int64_t>(read_file(path).size() - 100));
    read_all_of(all);
    CHECK(remote->announced.awaited() == 0);
    CHECK(remote->announced.read_unannounced() == 0);
    CHECK(remote->announced.most_asked() == 1);
  }
  {
    // Inflated spans are not requested.
    const auto held = inflated->announce(all);
    CHECK(remote->announced.awaited() == 0);
  }
  CHECK(remote->announced.most_asked() == 1);

  // Unread announcements keep nothing in memory, in any order of events.
  for (int round = 0; round < 8; ++round) {
    const auto other = as_indexed(remote, *shard.index);
    std::vector<FileRange> some;
    std::sample(records.begin(), records.end(), std::back_inserter(some), 12, random);
    Announcements held;
    for (const FileRange& each : some) {
      if (random() % 4 > 0) held.push_back(other->announce({&each, 1}));
    }
    std::shuffle(some.begin(), some.end(), random);
    std::shuffle(held.begin(), held.end(), random);
    for (const FileRange& each : some) {
      if (random() % 2 == 0) {
        REQUIRE(read(*other, each.offset, 1000) == plain.bytes().substr(each.offset, 1000));
      }
      if (!held.empty()) held.pop_back();
    }
    held.clear();
    REQUIRE(remote->announced.awaited() == 0);
  }
  CHECK(remote->announced.read_unannounced() == 0);
}

TEST_CASE_FIXTURE(Fixture, "inflated file: of a remote one, padding is not asked for with a span") {
  const std::string whole = deflated(plain.bytes(), Compression::gzip);
  write_file(path, whole + std::string(40 << 20, '\0'));
  const IndexedShard shard = open_indexed(path, IoMode::pread, {IndexUse::memory, "", {}});
  const auto remote = std::make_shared<FakeRemoteFile>(read_file(path));
  const auto inflated = as_indexed(remote, *shard.index);
  CHECK(read(*inflated, plain.size() - 100, 100) == plain.bytes().substr(plain.size() - 100));
  CHECK(remote->announced.asked() < 10 << 20);
  CHECK(remote->announced.awaited() == 0);
}

TEST_CASE_FIXTURE(Fixture, "inflated file: a walk over a remote one asks for each byte once") {
  for (const Compression compression : {Compression::gzip, Compression::zlib}) {
    pack(compression);
    const auto remote = std::make_shared<FakeRemoteFile>(read_file(path));
    {
      FrameWalk walk(remote, {.compression = compression});
      while (!walk.finished()) walk.advance(plain.size());
      CHECK(walk.take().offsets.count == plain.records() + 1);
      CHECK(remote->announced.read_unannounced() == 0);
      CHECK(remote->announced.awaited() == 0);
      CHECK(remote->announced.most_asked() == 1);
    }
    const auto left = std::make_shared<FakeRemoteFile>(read_file(path));
    {
      FrameWalk walk(left, {.compression = compression});
      walk.advance(1);
      CHECK(left->announced.awaited() > 0);
      CHECK(left->announced.awaited() < std::int64_t{2} << 20);
    }
    CHECK(left->announced.awaited() == 0);
  }
}
