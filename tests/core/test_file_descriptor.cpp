#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "core/storage/local/file_descriptor.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

bool is_open(int descriptor) {
  return ::fcntl(descriptor, F_GETFD) >= 0;
}

}  // namespace

TEST_CASE("file descriptor: closes itself, and is not inherited by programs") {
  const TemporaryFolder folder;
  write_file(folder / "file", "x");
  int number;
  {
    const FileDescriptor file(folder / "file");
    number = file.get();
    CHECK((::fcntl(number, F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK_FALSE(is_open(number));
  CHECK(error_of([&] { const FileDescriptor missing(folder / "missing"); }).system_error() ==
        ENOENT);
}

TEST_CASE("shared descriptors: an owner's is opened once and closed when forgotten") {
  const TemporaryFolder folder;
  write_file(folder / "file", "x");
  SharedDescriptors& shared = SharedDescriptors::instance();
  int opened = 0;
  const auto open = [&] {
    ++opened;
    return std::make_shared<const FileDescriptor>(folder / "file");
  };
  const int owner = 0;
  const int number = shared.acquire(&owner, open)->get();
  CHECK(shared.acquire(&owner, open)->get() == number);
  CHECK(opened == 1);
  CHECK(is_open(number));
  shared.forget(&owner);
  CHECK_FALSE(is_open(number));
  shared.forget(&owner);
}

TEST_CASE("shared descriptors: one that is held stays open when it is forgotten or pushed out") {
  const TemporaryFolder folder;
  write_file(folder / "file", "x");
  SharedDescriptors& shared = SharedDescriptors::instance();
  const auto open = [&] { return std::make_shared<const FileDescriptor>(folder / "file"); };
  std::vector<int> owners(2 * SharedDescriptors::kMax);
  auto held = shared.acquire(&owners[0], open);
  for (const int& owner : owners) shared.acquire(&owner, open);
  CHECK(is_open(held->get()));
  shared.forget(&owners[0]);
  CHECK(is_open(held->get()));
  const int number = held->get();
  held = nullptr;
  CHECK_FALSE(is_open(number));
  for (const int& owner : owners) shared.forget(&owner);
}

TEST_CASE("shared descriptors: a failure to open is passed on and not remembered") {
  const TemporaryFolder folder;
  const int owner = 0;
  SharedDescriptors& shared = SharedDescriptors::instance();
  const auto fail = [&] { return std::make_shared<const FileDescriptor>(folder / "missing"); };
  CHECK(error_of([&] { shared.acquire(&owner, fail); }).system_error() == ENOENT);
  write_file(folder / "missing", "");
  CHECK(shared.acquire(&owner, fail) != nullptr);
  shared.forget(&owner);
}

TEST_CASE("shared descriptors: threads race for more than there are, and fork meanwhile") {
  const TemporaryFolder folder;
  write_file(folder / "file", "x");
  SharedDescriptors& shared = SharedDescriptors::instance();
  std::vector<int> owners(3 * SharedDescriptors::kMax);
  std::atomic<int> closed{0};
  std::atomic<bool> stop{false};
  const auto use = [&](std::size_t i) {
    const auto file = shared.acquire(&owners[i % owners.size()], [&] {
      return std::make_shared<const FileDescriptor>(folder / "file");
    });
    if (!is_open(file->get())) ++closed;
  };
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      for (std::size_t i = number; !stop || i < 3000; i += 7) use(i);
    });
  }
  for (int i = 0; kAllocatorSurvivesFork && i < 10; ++i) {
    CHECK(run_in_child([&] {
            for (std::size_t owner = 0; owner < owners.size(); ++owner) use(owner);
            return closed == 0 ? 0 : 1;
          }) == 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(closed == 0);
  for (const int& owner : owners) shared.forget(&owner);
}

TEST_CASE("shared descriptors: a process that may have few keeps a quarter of them here") {
  const TemporaryFolder folder;
  write_file(folder / "file", "x");
  CHECK(run_in_child([&] {
          const rlimit few = {64, 64};
          ::setrlimit(RLIMIT_NOFILE, &few);
          const auto open = [&] { return std::make_shared<const FileDescriptor>(folder / "file"); };
          std::vector<int> owners(100);
          for (const int& owner : owners) SharedDescriptors::instance().acquire(&owner, open);
          int kept = 0;
          while (SharedDescriptors::instance().give_up_one()) ++kept;
          return kept == 16 ? 0 : 1;
        }) == 0);
}

TEST_CASE("shared descriptors: the least recently used make space where there are no more") {
  const TemporaryFolder folder;
  write_file(folder / "file", "x");
  CHECK(run_in_child([&] {
          const auto open = [&] { return std::make_shared<const FileDescriptor>(folder / "file"); };
          std::vector<int> owners(10);
          int highest = 0;
          for (const int& owner : owners) {
            highest = SharedDescriptors::instance().acquire(&owner, open)->get();
          }
          const auto limit = static_cast<rlim_t>(highest) + 1;
          const rlimit used_up = {limit, limit};
          ::setrlimit(RLIMIT_NOFILE, &used_up);
          std::vector<std::shared_ptr<const FileDescriptor>> more;
          for (int i = 0; i < 10; ++i) more.push_back(open());
          // Now no descriptor can be given up, and the failure is passed on.
          return error_of([&] { open(); }).system_error() == EMFILE ? 0 : 1;
        }) == 0);
}
