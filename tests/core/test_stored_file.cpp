#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "core/shard/walker.h"
#include "core/storage/fault_guard.h"
#include "core/storage/storage.h"
#include "failing_calls.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

std::string read_bytes(const StoredFile& file, std::uint64_t offset, std::size_t count) {
  std::string bytes(count, '?');
  file.read(offset, reinterpret_cast<std::uint8_t*>(bytes.data()), count);
  return bytes;
}

std::string bytes_at(const ShardWindow& window, std::uint64_t offset, std::size_t count) {
  std::string bytes(count, '?');
  CHECK(run_guarded(
      [&] { std::memcpy(bytes.data(), window.bytes + (offset - window.begin), count); }));
  return bytes;
}

}  // namespace

TEST_CASE("file: any bytes are read from anywhere") {
  const TemporaryFolder folder;
  const std::string bytes = payload(100'000);
  write_file(folder / "file", bytes);
  FOR_EACH_IO(io) {
    const auto file = StoredFile::open(folder / "file", io);
    CHECK(file->bytes() == bytes.size());
    CHECK((file->mapping() != nullptr) == (io == IoMode::mapped));
    for (const std::uint64_t offset : {0, 1, 4095, 4096, 99'999, 100'000}) {
      for (const std::size_t count : {0, 1, 5000, 100'000}) {
        if (offset + count > bytes.size()) continue;
        CHECK(read_bytes(*file, offset, count) == bytes.substr(offset, count));
      }
    }
  }
}

TEST_CASE("file: ranges are read side by side and apart, more of them than one call takes") {
  const TemporaryFolder folder;
  const std::string bytes = payload(9000);
  write_file(folder / "file", bytes);
  FOR_EACH_IO(io) {
    const auto file = StoredFile::open(folder / "file", io);
    std::string read(bytes.size() - 7, '?');
    std::vector<ReadRange> ranges;
    for (std::size_t at = 0; at < read.size();) {
      const std::size_t size = std::min<std::size_t>(ranges.size() % 8, read.size() - at);
      ranges.push_back({7 + at, reinterpret_cast<std::uint8_t*>(read.data()) + at, size});
      at += size;
    }
    CHECK(ranges.size() > 2000);
    file->read(ranges);
    CHECK(read == bytes.substr(7));
    std::reverse(ranges.begin(), ranges.end());
    read.assign(read.size(), '?');
    file->read(ranges);
    CHECK(read == bytes.substr(7));
  }
}

TEST_CASE("file: no bytes can be read from an empty file") {
  const TemporaryFolder folder;
  write_file(folder / "empty", "");
  FOR_EACH_IO(io) {
    const auto file = StoredFile::open(folder / "empty", io);
    CHECK(file->bytes() == 0);
    CHECK(read_bytes(*file, 0, 0).empty());
    CHECK(error_of([&] { read_bytes(*file, 0, 1); }).kind() == ErrorKind::truncated);
    CHECK(walk(file)->window(0, 100).end == 0);
    const FileRange all{0, 100};
    file->announce({&all, 1});
  }
}

TEST_CASE("file: what the file grows by later is not seen") {
  const TemporaryFolder folder;
  write_file(folder / "file", "0123456789");
  FOR_EACH_IO(io) {
    write_file(folder / "file", "0123456789");
    const auto file = StoredFile::open(folder / "file", io);
    write_file(folder / "file", "0123456789and more");
    CHECK(file->bytes() == 10);
    CHECK(read_bytes(*file, 5, 5) == "56789");
    CHECK(walk(file)->window(5, 100).end == 10);
  }
}

TEST_CASE("file: a file that shrinks is an error that says so, and only where it was cut") {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  for (const auto& [io, announced] :
       {std::pair{IoMode::mapped, false}, {IoMode::mapped, true}, {IoMode::pread, false}}) {
    write_file(path, payload(100'000));
    const auto file = StoredFile::open(path, io);
    const FileRange all{0, 100'000};
    if (announced) file->announce({&all, 1}, Reads::in_order);
    REQUIRE(::truncate(path.c_str(), 4096) == 0);
    CHECK(read_bytes(*file, 0, 4096) == payload(100'000).substr(0, 4096));
    const Error error = error_of([&] { read_bytes(*file, 8192, 100); });
    CHECK(error.kind() == ErrorKind::truncated);
    CHECK(error.place().path == path);
    CHECK(error.place().offset == 8192);
    CHECK(holds(error.message(), "'" + path + "'"));
    CHECK(holds(error.message(), "100000"));
    CHECK(holds(error.message(), "truncated"));
    CHECK(holds(error.message(), "open a new reader"));
    // The file was only shortened: the remaining bytes can still be read.
    CHECK(read_bytes(*file, 10, 10) == payload(100'000).substr(10, 10));
  }
}

TEST_CASE("file: threads that read a file while it is cut all get bytes or an error") {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  const std::string bytes = payload(1 << 20);
  FOR_EACH_IO(io) {
    write_file(path, bytes);
    const auto file = StoredFile::open(path, io);
    std::atomic<int> failures{0}, wrong{0};
    std::atomic<bool> cut{false};
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 4; ++number) {
      threads.emplace_back([&, number] {
        std::string read(100, '?');
        int after_cut = 0;
        for (std::uint64_t i = 0; after_cut < 1000; ++i) {
          if (cut) ++after_cut;
          const std::uint64_t offset = (i * 4096 + number * 512) % (bytes.size() - 100);
          try {
            file->read(offset, reinterpret_cast<std::uint8_t*>(read.data()), read.size());
            if (read != bytes.substr(offset, read.size())) ++wrong;
          } catch (const Error& error) {
            ++failures;
            if (error.kind() != ErrorKind::truncated) ++wrong;
          }
        }
      });
    }
    REQUIRE(::truncate(path.c_str(), 8192) == 0);
    cut = true;
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(failures > 0);
  }
}

TEST_CASE(
    "file: one that is replaced is read to its end, unless its descriptor had to be given up") {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  FOR_EACH_IO(io) {
    write_file(path, "the old one");
    const auto file = StoredFile::open(path, io);
    write_file(path + ".new", "the new one");
    REQUIRE(std::rename((path + ".new").c_str(), path.c_str()) == 0);
    CHECK(read_bytes(*file, 0, 11) == "the old one");
    give_up_descriptors();
    if (io == IoMode::mapped) {
      CHECK(read_bytes(*file, 0, 11) == "the old one");
    } else {
      const Error error = error_of([&] { read_bytes(*file, 0, 11); });
      CHECK(error.kind() == ErrorKind::stale_index);
      CHECK(error.place().path == path);
      CHECK(holds(error.message(), "'" + path + "' was replaced by another file"));
    }
  }
}

TEST_CASE("file: what was announced in order is read once without the mapping") {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  const std::string bytes = payload(100'000);
  write_file(path, bytes);
  const auto file = StoredFile::open(path, IoMode::mapped);
  const FileRange all{0, bytes.size()};
  const auto announce = [&](Reads reads) { file->announce({&all, 1}, reads); };
  const auto read_all = [&] {
    return read_bytes(*file, 0, 60'000) + read_bytes(*file, 60'000, 40'000);
  };
  {
    const FailingCall reads("preadv", 1'000, EIO);
    CHECK(read_all() == bytes);
    CHECK(reads.calls() == 0);
    announce(Reads::in_order);
    CHECK(file->is_better_read());
    CHECK(read_all() == bytes);
    CHECK(reads.calls() == 2);
    CHECK_FALSE(file->is_better_read());
    announce(Reads::in_order);
    announce(Reads::another);
    CHECK(read_all() == bytes);
    CHECK(reads.calls() == 2);
  }
  announce(Reads::in_order);
  {
    const FailingCall reads("preadv", 1, EBADF);
    CHECK(read_all() == bytes);  // from the mapping
  }
  announce(Reads::in_order);
  write_file(path + ".new", payload(100'000, 2));
  REQUIRE(std::rename((path + ".new").c_str(), path.c_str()) == 0);
  give_up_descriptors();
  CHECK(read_all() == bytes);  // from the mapping
}

TEST_CASE("file: another one that was given the same inode is noticed when it is opened again") {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  for (int round = 0; round < 20; ++round) {
    write_file(path, "the old one");
    const auto file = StoredFile::open(path, IoMode::pread);
    give_up_descriptors();
    const FileFacts before = file->facts();
    // ext4 gives the inode to the next file at once. On other filesystems, the new inode reveals
    // the replacement.
    std::filesystem::remove(path);
    write_file(path, "the new one");
    if (examine_file(path).mtime_ns == before.mtime_ns) continue;  // the clock has not ticked
    const Error error = error_of([&] { read_bytes(*file, 0, 11); });
    CHECK(error.kind() == ErrorKind::stale_index);
    CHECK(holds(error.message(), "while it was being read. Open a new reader"));
  }
}

TEST_CASE("file: a change is noticed when it is opened again, by ctime where that counts") {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  const AssumedToLast restore;
  for (const bool lasts : {false, true}) {
    for (const bool mtime_back : {false, true}) {
      CAPTURE(lasts);
      CAPTURE(mtime_back);
      assume_versions_last(lasts);
      TestShard shard(path);
      shard.append("the old one").set_mtime_ns(1'000'000'000);
      const auto file = StoredFile::open(path, IoMode::pread);
      CHECK(file->facts().version_lasts == lasts);
      give_up_descriptors();
      CHECK(read_bytes(*file, 0, 11) == "the old one");
      give_up_descriptors();
      wait_for_another_ctime(path);
      shard.overwrite(0, "the new one");
      if (mtime_back) shard.set_mtime_ns(1'000'000'000);
      if (mtime_back && !lasts) {
        CHECK(read_bytes(*file, 0, 11) == "the new one");  // such a filesystem reveals no more
        continue;
      }
      const Error error = error_of([&] { read_bytes(*file, 0, 11); });
      CHECK(error.kind() == ErrorKind::stale_index);
      CHECK(holds(error.message(), "'" + path + "' was changed while it was being read."));
      shard.truncate_to(5);
      const Error shorter = error_of([&] { read_bytes(*file, 0, 11); });
      CHECK(shorter.kind() == ErrorKind::truncated);
      CHECK(holds(shorter.message(), "had 11 bytes when it was opened"));
    }
  }
}

TEST_CASE("file: a thousand files are open with few descriptors") {
  const TemporaryFolder folder;
  std::vector<std::string> paths;
  for (int i = 0; i < 1000; ++i) {
    paths.push_back(folder / ("file" + std::to_string(i)));
    write_file(paths.back(), std::to_string(i));
  }
  FOR_EACH_IO(io) {
    CHECK(run_in_child([&] {
            const rlimit few = {60, 60};
            ::setrlimit(RLIMIT_NOFILE, &few);
            std::vector<std::shared_ptr<const StoredFile>> files;
            for (const std::string& path : paths) files.push_back(StoredFile::open(path, io));
            for (int round = 0; round < 3; ++round) {
              for (std::size_t i = 0; i < files.size(); ++i) {
                if (read_bytes(*files[i], 0, files[i]->bytes()) != std::to_string(i)) return 1;
              }
            }
            return 0;
          }) == 0);
  }
}

TEST_CASE("walker: windows hold what was asked for, or all that is left") {
  const TemporaryFolder folder;
  const std::string bytes = payload(50'000);
  write_file(folder / "file", bytes);
  FOR_EACH_IO(io) {
    const auto walker = walk(StoredFile::open(folder / "file", io));
    for (const std::uint64_t offset : {0, 1, 49'999, 30'000, 100, 50'000, 20'000}) {
      for (const std::size_t wanted : {1, 12, 5000, 100'000}) {
        const ShardWindow window = walker->window(offset, wanted);
        CAPTURE(offset);
        CAPTURE(wanted);
        CHECK(window.shard_bytes == bytes.size());
        CHECK(window.begin <= offset);
        const std::uint64_t count = std::min<std::uint64_t>(wanted, bytes.size() - offset);
        REQUIRE(window.end >= offset + count);
        CHECK(bytes_at(window, offset, count) == bytes.substr(offset, count));
      }
    }
  }
}

TEST_CASE("file: what cannot be opened says why") {
  const TemporaryFolder folder;
  FOR_EACH_IO(io) {
    const Error missing = error_of([&] { StoredFile::open(folder / "missing", io); });
    CHECK(missing.kind() == ErrorKind::io);
    CHECK(missing.system_error() == ENOENT);
    CHECK(missing.place().path == folder / "missing");
    CHECK(holds(missing.message(), "'" + folder / "missing" + "' failed: No such file"));

    const Error is_folder = error_of([&] { StoredFile::open(folder.path(), io); });
    CHECK(is_folder.system_error() == EISDIR);
    CHECK(holds(is_folder.message(), "Name the shards in it"));

    const Error device = error_of([&] { StoredFile::open("/dev/zero", io); });
    CHECK(device.kind() == ErrorKind::invalid);
    CHECK(holds(device.message(), "not a regular file"));
  }
}
