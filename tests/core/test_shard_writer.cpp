#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "core/base/warnings.h"
#include "core/index/folder_index.h"
#include "core/storage/local/system_calls.h"
#include "core/write/sharded_writer.h"
#include "failing_calls.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// A folder `data` for shards, beside the folder of their indexes.
struct Place {
  TemporaryFolder folder;
  std::string data = folder / "data";
  std::string shard = data + "/shard";
  Place() { std::filesystem::create_directory(data); }

  // Returns the number of shards with an index. Checks that the folder holds nothing else.
  std::size_t indexed() const {
    for (const std::string& name : names("data.tfrfast")) CHECK(name == "index");
    const auto index = FolderIndex::load(folder / "data.tfrfast/index");
    return index == nullptr ? 0 : index->entries().size();
  }

  // The calls of publication. On filesystems with files without a name, publication gives such a
  // file its name.
  std::vector<const char*> calls_of(std::vector<const char*> calls) const {
    const int unnamed = open_unnamed(data);
    if (unnamed < 0) return {calls.begin(), calls.end() - 1};
    ::close(unnamed);
    return calls;
  }

  // Without the lock, which is a file where folders cannot be locked.
  std::set<std::string> names(const std::string& below) const {
    std::set<std::string> found;
    if (!std::filesystem::exists(folder / below)) return found;
    for (const auto& entry : std::filesystem::directory_iterator(folder / below)) {
      found.insert(entry.path().filename().string());
    }
    found.erase(".lock");
    return found;
  }
};

void write_records(ShardWriter& writer, std::size_t count, std::size_t bytes) {
  for (unsigned i = 0; i < count; ++i) writer.write(bytes_of(payload(bytes, i)));
}

std::string frames(std::size_t count, std::size_t bytes) {
  std::string all;
  for (unsigned i = 0; i < count; ++i) all += frame_of(payload(bytes, i));
  return all;
}

}  // namespace

TEST_CASE("shard writer: short writes are continued") {
  const Place place;
  ShardWriter writer(place.shard, {});
  {
    const FailingCall one_byte_a_call("pwritev", 0, 0);
    write_records(writer, 3, 100);
    writer.write(bytes_of(payload(70'000, 3)));
    writer.finish();
    CHECK(one_byte_a_call.calls() > 70'000);
  }
  writer.publish();
  CHECK(read_file(place.shard) == frames(3, 100) + frame_of(payload(70'000, 3)));
}

TEST_CASE("shard writer: no failure of the system publishes anything") {
  for (const char* call : Place().calls_of({"pwritev", "fsync", "rename", "linkat"})) {
    for (const int error : {EIO, ENOSPC}) {
      int failures = 0;
      for (int allowed = 0; allowed < 100; ++allowed) {
        CAPTURE(call);
        CAPTURE(allowed);
        const Place place;
        write_file(place.shard, "before");
        bool failed = false;
        {
          const FailingCall fails(call, allowed, error);
          try {
            ShardWriter writer(place.shard, {});
            write_records(writer, 12, 600'000);
            writer.finish();
            writer.publish();
          } catch (const Error& caught) {
            failed = true;
            CHECK(caught.kind() == ErrorKind::io);
            CHECK(caught.system_error() == error);
          }
        }
        failures += failed;
        CHECK(read_file(place.shard) == (failed ? "before" : frames(12, 600'000)));
        CHECK(place.names("data") == std::set<std::string>{"shard"});
        if (failed) CHECK(place.indexed() == 0);
        if (!failed) break;  // publication makes no further call
      }
      CHECK(failures > 0);
    }
  }
}

TEST_CASE("shard writer: an index that fails after its shard appears is a warning") {
  int warnings = 0;
  for (int allowed = 0;; ++allowed) {
    CAPTURE(allowed);
    REQUIRE(allowed < 10);
    const Place place;
    take_warnings();
    bool failed = false, was_reached = false;
    {
      const FailingCall fails("pwrite", allowed, EIO);
      try {
        ShardWriter writer(place.shard, {});
        write_records(writer, 3, 100);
        writer.finish();
        writer.publish();
      } catch (const Error& caught) {
        failed = true;
        CHECK(caught.system_error() == EIO);
      }
      was_reached = fails.calls() > allowed;
    }
    const std::vector<std::string> said = take_warnings();
    CHECK(place.names("data").contains("shard") == !failed);
    CHECK(said.size() == (was_reached && !failed ? 1 : 0));
    warnings += static_cast<int>(said.size());
    CHECK(place.indexed() == (was_reached ? 0 : 1));
    if (!was_reached) break;  // publication makes no further call
  }
  CHECK(warnings > 0);
}

TEST_CASE("shard writer: goes on without space ahead where there is none") {
  for (const int error : {EOPNOTSUPP, ENOSPC}) {
    const Place place;
    const FailingCall fails("fallocate", 0, error);
    ShardWriter writer(place.shard, {});
    write_records(writer, 100, 100'000);
    writer.finish();
    writer.publish();
    CHECK(std::filesystem::file_size(place.shard) == 100 * 100'016);
  }
}

TEST_CASE("shard writer: space ahead is given back") {
  const Place place;
  WriteOptions options;
  options.index = false;
  ShardWriter writer(place.shard, options);
  write_records(writer, 50, 100'000);
  writer.finish();
  writer.publish();
  struct stat status;
  REQUIRE(::stat(place.shard.c_str(), &status) == 0);
  CHECK(status.st_size == 50 * 100'016);
  CHECK(status.st_blocks * 512 < status.st_size + (64 << 10));
}

TEST_CASE("shard writer: parked, it goes on where it was") {
  const Place place;
  ShardWriter writer(place.shard, {});
  write_records(writer, 10, 100);
  writer.park();
  CHECK(!place.names("data").contains("shard"));
  // The file has a temporary name. The name is among the data only if the filesystem has no files
  // without a name.
  CHECK(place.names("data").size() + place.names("data.tfrfast").size() == 1);
  for (unsigned i = 10; i < 20; ++i) writer.write(bytes_of(payload(100, i)));
  writer.finish();
  writer.park();
  writer.publish();
  CHECK(read_file(place.shard) == frames(20, 100));
  CHECK(place.names("data") == std::set<std::string>{"shard"});
}

TEST_CASE("sharded writer: one shard that cannot be completed keeps all back") {
  const Place place;
  ShardedOptions options;
  options.shard_count = 5;
  options.shard.existing = Existing::keep;
  for (const char* call : place.calls_of({"fsync", "linkat"})) {
    const FailingCall fails(call, 4, EIO);
    CHECK(error_of([&] {
            ShardedWriter writer(place.data + "/set", options);
            for (unsigned i = 0; i < 20; ++i) writer.write(bytes_of(payload(100, i)));
            writer.close();
          }).system_error() == EIO);
    CHECK(place.names("data").empty());
    for (const std::string& name : place.names("data.tfrfast")) CHECK(name == "index");
  }
}
