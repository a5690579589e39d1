#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/storage/local/pages_ahead.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// A file that is not in memory, if the filesystem is on a disk.
class ColdFile {
 public:
  explicit ColdFile(std::uint64_t bytes) {
    write_file(path_, std::string(static_cast<std::size_t>(bytes), 'x'));
    const int file = ::open(path_.c_str(), O_RDONLY);
    ::fsync(file);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
    file_ = StoredFile::open(path_, IoMode::mapped);
  }
  const StoredFile& operator*() const { return *file_; }
  const StoredFile* operator->() const { return file_.get(); }
  // Asks without beginning to read, which is_cached() may do.
  bool has_in_memory(std::uint64_t offset) const {
    auto* const page = const_cast<std::uint8_t*>(file_->mapping()) + offset / 4096 * 4096;
    unsigned char found = 0;
    CHECK(::mincore(page, 4096, &found) == 0);
    return (found & 1) != 0;
  }
  // Whether no page is in memory.
  bool is_on_disk() const {
    std::vector<unsigned char> pages(static_cast<std::size_t>(file_->bytes() / 4096));
    auto* const begin = const_cast<std::uint8_t*>(file_->mapping());
    CHECK(::mincore(begin, static_cast<std::size_t>(file_->bytes()), pages.data()) == 0);
    return std::none_of(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; });
  }
  // Waits until the page is in memory. False if the wait takes too long.
  bool arrives(std::uint64_t offset) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
    while (!has_in_memory(offset)) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

 private:
  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "file";
  std::shared_ptr<const StoredFile> file_;
};

void announce(const StoredFile& file, std::uint64_t offset, std::uint64_t bytes) {
  const FileRange range{offset, bytes};
  CHECK(file.announce({&range, 1}, Reads::in_order) == nullptr);
}

bool take(PagesAhead& ahead, std::uint64_t offset, std::uint64_t bytes) {
  const FileRange range{offset, bytes};
  return ahead.take(range);
}

}  // namespace

TEST_CASE("pages ahead: a file that is announced in order is read farther than announced") {
  const ColdFile file(80 * kMiB);
  if (!file.is_on_disk()) return;
  std::uint64_t end = 0;
  for (; end < 20 * kMiB; end += kMiB) announce(*file, end, kMiB);
  CHECK(file.arrives(end + 15 * kMiB));
  CHECK_FALSE(file->is_cached(0));  // so that the rest is announced, too
  for (; end < file->bytes(); end += kMiB) announce(*file, end, kMiB);
  CHECK(file.arrives(file->bytes() - 1));
  CHECK(file->is_cached(file->bytes() - 1));  // the kernel may need the memory of the first pages
}

TEST_CASE("pages ahead: a look at the first batch reads no more than the batch twice") {
  const ColdFile file(40 * kMiB), other(40 * kMiB);
  if (!file.is_on_disk() || !other.is_on_disk()) return;
  // The kernel itself reads ahead: some MiB on most disks, and more on others.
  std::string bytes(kMiB, 0);
  std::ifstream plain(other->path(), std::ios::binary);
  for (int i = 0; i < 2; ++i) plain.read(bytes.data(), static_cast<std::streamsize>(kMiB));
  if (other.has_in_memory(36 * kMiB)) return;
  announce(*file, 0, kMiB);
  CHECK(file.arrives(2 * kMiB - 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(file.has_in_memory(36 * kMiB));
}

TEST_CASE("pages ahead: neighbouring ranges are in order, although threads swap them") {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  write_file(path, std::string(40 * kMiB, 'x'));
  PagesAhead ahead(path, 40 * kMiB);
  constexpr std::uint64_t kBatch = 100'000;
  CHECK_FALSE(take(ahead, 0, kBatch));  // may be a single record
  CHECK_FALSE(take(ahead, 2 * kBatch, kBatch));
  CHECK_FALSE(ahead.is_running());
  CHECK_FALSE(take(ahead, kBatch, kBatch));
  CHECK(take(ahead, 3 * kBatch, kBatch));
  CHECK(ahead.is_running());
  for (std::uint64_t batch = 4; batch < 40; batch += 2) {
    take(ahead, (batch + 1) * kBatch, kBatch);
    CHECK(take(ahead, batch * kBatch, kBatch));
    CHECK(ahead.is_running());
  }
  ahead.leave();
  CHECK_FALSE(ahead.is_running());
  CHECK_FALSE(take(ahead, 40 * kMiB, kBatch));
}

TEST_CASE("pages ahead: long records at random are not in order") {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  write_file(path, "");
  PagesAhead ahead(path, 400 * kMiB);
  for (std::uint64_t turn = 1; turn < 40; ++turn) {
    CHECK_FALSE(take(ahead, turn * 7 % 40 * 10 * kMiB, 10 * kMiB));
    CHECK_FALSE(ahead.is_running());
  }
}

TEST_CASE("pages ahead: of a file that cannot be opened, announcements are left to the system") {
  const TemporaryFolder folder;
  const std::string path = folder / "gone";
  PagesAhead ahead(path, 8 * kMiB);
  bool is_taken = true;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
  while (is_taken && std::chrono::steady_clock::now() < end) {
    is_taken = take(ahead, 0, kMiB);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK_FALSE(is_taken);
  CHECK_FALSE(ahead.is_running());
}

TEST_CASE("pages ahead: a forked child has threads of its own") {
  const ColdFile file(16 * kMiB);
  if (!file.is_on_disk()) return;
  announce(*file, 0, kMiB);
  CHECK(run_in_child([&] {
          for (std::uint64_t end = 0; end < 16 * kMiB; end += kMiB) announce(*file, end, kMiB);
          return file.arrives(16 * kMiB - 1) ? 0 : 1;
        }) == 0);
}
