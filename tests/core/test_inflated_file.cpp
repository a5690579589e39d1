#include "core/codec/inflated_file.h"
#include "core/index/damage_in_words.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <random>
#include <span>
#include <string>
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

TEST_CASE_FIXTURE(Fixture, "inflated file: each added span bounds the bytes that stay in memory") {
  const IndexedShard shard = pack(Compression::gzip);
  const SeekPoints& points = *shard.index->seek_points();
  REQUIRE(points.size() > 3);
  const auto bytes_of = [&](std::size_t number) {
    return static_cast<std::size_t>(points[number].end - points[number].begin);
  };
  std::size_t largest = 0;
  for (std::size_t i = 0; i < points.size(); ++i) largest = std::max(largest, bytes_of(i));
  for (const bool is_offered : {true, false}) {
    CAPTURE(is_offered);
    // Bytes of this file are available only in spans.
    const auto remote = std::make_shared<FakeRemoteFile>(read_file(path));
    const auto inflated = as_indexed(remote, *shard.index);
    const auto& file = dynamic_cast<const InflatedFile&>(*inflated);
    for (const std::size_t spans : std::initializer_list<std::size_t>{1, 3, 2}) {
      CAPTURE(spans);
      file.keep_at_most(spans * largest);
      for (std::size_t i = 0; i < points.size(); ++i) {
        if (is_offered) {
          auto span = std::make_shared<InflatedSpan>();
          span->bytes = bytes_of(i);
          file.offer(i, std::move(span), WalkedSpans::last);
        } else {
          read(file, points[i].begin, 1);
        }
      }
      std::size_t kept = 0, kept_bytes = 0;
      for (std::size_t i = 0; i < points.size(); ++i) {
        if (!file.is_cached(points[i].begin)) continue;
        ++kept;
        kept_bytes += bytes_of(i);
      }
      CHECK(kept >= spans);
      CHECK(kept_bytes <= spans * largest);
    }
  }
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
