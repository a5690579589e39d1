#include <doctest/doctest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/base/thread.h"
#include "core/base/waiting.h"
#include "core/storage/remote/remote_client.h"
#include "core/storage/remote/remote_exchange.h"
#include "core/storage/remote/remote_file.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

const std::string kUrl = "s3://bucket/object";

StorageOptions options_with(const std::string& cache_folder = "") {
  StorageOptions options;
  options.access = "options";
  options.cache_folder = cache_folder;
  options.cache_limit_bytes = cache_folder.empty() ? 0 : 100'000'000;
  return options;
}

// A network of one object, and its client.
class Network {
 public:
  explicit Network(std::string bytes) : bytes_(std::move(bytes)) {
    descriptor_ = client_table().begin();
    REQUIRE(descriptor_ >= 0);
    thread_ = start_thread([this] { serve(); });
  }
  ~Network() {
    client_table().end("the test is over.");
    stop();
  }
  // From now on, the client takes and answers no requests.
  void stop() {
    ending_ = true;
    if (thread_.joinable()) thread_.join();
  }

  // The answers to requests for ranges.
  enum class Answers : std::uint8_t { given, refused, none };
  std::atomic<Answers> answers{Answers::given};

  std::vector<FileRange> ranges() {
    const std::lock_guard lock(mutex_);
    return ranges_;
  }
  std::set<std::uint64_t> abandoned() {
    const std::lock_guard lock(mutex_);
    return abandoned_;
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    ranges_.clear();
  }

 private:
  void serve() {
    const ClientTable& table = client_table();
    while (!ending_) {
      pollfd ready{descriptor_, POLLIN, 0};
      if (::poll(&ready, 1, 10) <= 0) continue;
      table.acknowledge();
      while (const std::uint64_t number = table.take_abandoned()) {
        const std::lock_guard lock(mutex_);
        abandoned_.insert(number);
      }
      ClientRequest request;
      while (table.take(&request) != 0) answer(request);
    }
  }

  void answer(const ClientRequest& request) {
    const ClientTable& table = client_table();
    if (request.bytes == 0) {
      const ClientFacts facts{bytes_.size(), 1, {7, 8, 9}, 1, 0};
      return table.finish_facts(request.number, &facts, "version 7");
    }
    CHECK(std::string(request.url) == kUrl);
    CHECK(std::string(request.access) == "options");
    CHECK(std::string(request.version) == "version 7");
    {
      const std::lock_guard lock(mutex_);
      ranges_.push_back({request.offset, request.bytes});
    }
    switch (answers) {
      case Answers::given:
        return table.receive(request.number, 0, bytes_.data() + request.offset, request.bytes);
      case Answers::refused:
        return table.fail(request.number, 0, EACCES, "It is forbidden.");
      case Answers::none:
        return;
    }
  }

  const std::string bytes_;
  int descriptor_ = -1;
  std::atomic<bool> ending_{false};
  std::mutex mutex_;
  std::vector<FileRange> ranges_;
  std::set<std::uint64_t> abandoned_;
  std::thread thread_;
};

std::string some_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>((i * 2654435761U) >> 13);
  return bytes;
}

struct Fixture {
  std::string read(std::uint64_t offset, std::size_t count) {
    std::string out(count, '\0');
    file->read(offset, reinterpret_cast<std::uint8_t*>(out.data()), count);
    return out;
  }
  std::string expected(std::uint64_t offset, std::size_t count) const {
    return bytes.substr(static_cast<std::size_t>(offset), count);
  }

  const std::string bytes = some_bytes(20 << 20);
  Network network{bytes};
  std::shared_ptr<const StoredFile> file =
      open_remote_file(kUrl, IoMode::automatic, options_with());
};

struct Stop {};
class StopSoon final : public WaitCheck {
 public:
  void check() override { throw Stop(); }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "remote file: bytes are those of the object") {
  CHECK(file->bytes() == bytes.size());
  CHECK(file->facts().version.words[1] == 8);
  CHECK(file->path() == kUrl);
  CHECK(read(5, 100) == expected(5, 100));
  CHECK(read(3 << 20, 12 << 20) == expected(3 << 20, 12 << 20));  // more than one request
  std::string first(10, '\0'), second(20, '\0');
  const ReadRange ranges[] = {{1'000'000, reinterpret_cast<std::uint8_t*>(second.data()), 20},
                              {10, reinterpret_cast<std::uint8_t*>(first.data()), 10}};
  file->read(ranges);
  CHECK(first == expected(10, 10));
  CHECK(second == expected(1'000'000, 20));
  CHECK(error_of([&] { read(bytes.size() - 5, 6); }).kind() == ErrorKind::truncated);
}

TEST_CASE_FIXTURE(Fixture, "remote file: neighbours are one request, and long ranges are several") {
  const FileRange close[] = {{100, 50}, {1000, 50}, {5 << 20, 100}};
  const auto held = file->announce(close);
  CHECK(read(1000, 50) == expected(1000, 50));
  CHECK(read(100, 50) == expected(100, 50));
  CHECK(read(5 << 20, 100) == expected(5 << 20, 100));
  REQUIRE(network.ranges().size() == 2);
  network.forget();
  CHECK(read(100, 50) == expected(100, 50));  // the memory was freed after the read
  CHECK(network.ranges().size() == 1);
  network.forget();
  read(0, 20 << 20);
  CHECK(network.ranges().size() == 3);
}

TEST_CASE_FIXTURE(Fixture, "remote file: what nobody wants is asked for only to bridge a gap") {
  const FileRange pieces[] = {{50'000, 100}, {90'000, 100}};
  auto inside = file->announce(pieces);
  // One request fetches both ranges, and the gap between them.
  const FileRange around[] = {{10'000, 100}, {130'000, 100}};
  auto outer = file->announce(around);
  for (const std::uint64_t at : {10'000, 50'000, 90'000, 130'000}) {
    CHECK(read(at, 100) == expected(at, 100));
  }
  std::uint64_t asked_for = 0;
  for (const FileRange& each : network.ranges()) {
    CHECK((each.offset >= 10'000 && each.offset + each.bytes <= 130'100));
    asked_for += each.bytes;
  }
  CHECK(asked_for <= 120'100);
  network.forget();
  // The gap between two existing pieces belongs to no piece.
  const FileRange apart[] = {{1'000'000, 100}, {2'000'000, 100}};
  inside = file->announce(apart);
  const FileRange outside[] = {{950'000, 100}, {1'040'000, 100}};
  outer = file->announce(outside);
  for (const std::uint64_t at : {950'000, 1'000'000, 1'040'000, 2'000'000}) {
    CHECK(read(at, 100) == expected(at, 100));
  }
  CHECK(network.ranges().size() == 4);
}

TEST_CASE("remote file: whoever opens one starts a client, if somebody has said how") {
  static int starts = 0;
  static std::unique_ptr<Network> started;
  client_table().end("there is none.");
  client_table().start_with([] {
    ++starts;
    started = std::make_unique<Network>(some_bytes(1000));
  });
  const auto file = open_remote_file(kUrl, IoMode::automatic, options_with());
  CHECK(file->bytes() == 1000);
  CHECK(starts == 1);
  open_remote_file(kUrl, IoMode::automatic, options_with());
  CHECK(starts == 1);
  client_table().start_with(nullptr);
  started = nullptr;
  CHECK_THROWS_AS(open_remote_file(kUrl, IoMode::automatic, options_with()), Error);
}

TEST_CASE_FIXTURE(Fixture, "remote file: a client that takes over answers what another has taken") {
  network.answers = Network::Answers::none;
  const FileRange ahead[] = {{500'000, 1000}};
  const auto held = file->announce(ahead);
  std::string got;
  std::thread waiting = start_thread([&] { got = read(100, 50); });
  while (network.ranges().size() < 2) std::this_thread::yield();
  network.stop();
  {
    Network successor(bytes);
    waiting.join();
    CHECK(got == expected(100, 50));
    CHECK(read(500'100, 7) == expected(500'100, 7));
    CHECK(successor.ranges().size() == 2);
    // The replaced client's numbers have no meaning any more.
    for (std::uint64_t number = 1; number < 10; ++number) {
      client_table().receive(number, 0, bytes.data(), 50);
    }
    CHECK(read(100, 50) == expected(100, 50));
  }
}

TEST_CASE_FIXTURE(Fixture, "remote file: whoever waits learns that an answer found no memory") {
  network.answers = Network::Answers::none;
  std::thread waiting = start_thread([&] { CHECK_THROWS_AS(read(100, 50), std::bad_alloc); });
  while (network.ranges().empty()) std::this_thread::yield();
  for (std::uint64_t number = 1; number < 10'000; ++number) {
    RemoteExchange::instance().fail_for_memory(number);
  }
  waiting.join();
}

TEST_CASE_FIXTURE(Fixture, "remote file: what was announced twice may be read twice") {
  const FileRange twice[] = {{100, 50}, {100, 50}, {120, 60}};
  const auto held = file->announce(twice);
  for (int i = 0; i < 2; ++i) CHECK(read(100, 50) == expected(100, 50));
  CHECK(read(120, 60) == expected(120, 60));
  CHECK(network.ranges().size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "remote file: what several read together is there once") {
  const FileRange block[] = {{0, 10'000}};
  const auto found = file->announce(block, Reads::the_same);
  const FileRange part[] = {{100, 50}};
  const auto needed = file->announce(part, Reads::the_same);
  CHECK(read(0, 10'000) == expected(0, 10'000));
  CHECK(network.ranges().size() == 1);
  CHECK(read(100, 50) == expected(100, 50));  // none of the bytes were kept
  CHECK(network.ranges().size() == 2);
}

TEST_CASE_FIXTURE(Fixture, "remote file: what is withdrawn stays for others who announced it") {
  const FileRange ours[] = {{100, 50}, {5'000'000, 50}};
  const FileRange theirs[] = {{120, 60}};
  auto mine = file->announce(ours);
  const auto held = file->announce(theirs);
  while (network.ranges().size() < 3) std::this_thread::yield();
  mine = nullptr;
  network.forget();
  CHECK(read(120, 60) == expected(120, 60));
  CHECK(network.ranges().empty());
  CHECK(read(5'000'000, 50) == expected(5'000'000, 50));
  CHECK(network.ranges().size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "remote file: what is withdrawn is not awaited, and frees its space") {
  network.answers = Network::Answers::none;
  const FileRange range[] = {{100, 50}};
  auto held = file->announce(range);
  while (network.ranges().empty()) std::this_thread::yield();
  held = nullptr;
  while (network.abandoned().empty()) std::this_thread::yield();
  network.answers = Network::Answers::given;
  CHECK(read(100, 50) == expected(100, 50));
  // Reads more than the bound in all, but never at the same time.
  const FileRange whole[] = {{0, 20 << 20}};
  for (int i = 0; i < 20; ++i) {
    network.forget();
    held = file->announce(whole);
    while (network.ranges().size() < 3) std::this_thread::yield();
    held = nullptr;
  }
}

TEST_CASE_FIXTURE(Fixture, "remote file: what is hurried comes although there is no space ahead") {
  std::vector<std::shared_ptr<const StoredFile>> files;
  Announcements all_held;
  const FileRange whole[] = {{0, 20 << 20}};
  for (int i = 0; i < 14; ++i) {
    files.push_back(open_remote_file(kUrl, IoMode::automatic, options_with()));
    all_held.push_back(files.back()->announce(whole));
  }
  const FileRange range[] = {{7, 50}};
  const auto held = file->announce(range);
  const auto is_asked_for = [&] {
    const std::vector<FileRange> ranges = network.ranges();
    return std::any_of(ranges.begin(), ranges.end(),
                       [](const FileRange& each) { return each.offset == 7; });
  };
  CHECK_FALSE(is_asked_for());
  held->hurry();
  while (!is_asked_for()) std::this_thread::yield();
}

TEST_CASE_FIXTURE(Fixture,
                  "remote file: a failure is an error once, and the next read asks again") {
  network.answers = Network::Answers::refused;
  const FileRange range[] = {{100, 50}};
  const auto held = file->announce(range);
  const Error error = error_of([&] { read(110, 10); });
  CHECK(error.message() == "It is forbidden.");
  CHECK(error.system_error() == EACCES);
  CHECK(error.place().path == kUrl);
  CHECK(error.place().offset == 100);
  network.answers = Network::Answers::given;
  CHECK(read(110, 10) == expected(110, 10));
}

TEST_CASE_FIXTURE(Fixture, "remote file: whoever is responsible for a thread may end its wait") {
  network.answers = Network::Answers::none;
  {
    StopSoon stop;
    CHECK_THROWS_AS(read(100, 50), Stop);
  }
  while (network.abandoned().empty()) std::this_thread::yield();
}

TEST_CASE_FIXTURE(Fixture, "remote file: no more is read ahead than the bound allows") {
  // The object has less than the bound, so it is announced again and again.
  std::vector<std::shared_ptr<const StoredFile>> files;
  Announcements all_held;
  const FileRange whole[] = {{0, 20 << 20}};
  for (int i = 0; i < 20; ++i) {
    files.push_back(open_remote_file(kUrl, IoMode::automatic, options_with()));
    all_held.push_back(files.back()->announce(whole));
  }
  const auto asked_for = [&] {
    std::uint64_t sum = 0;
    for (const FileRange& each : network.ranges()) sum += each.bytes;
    return sum;
  };
  const std::uint64_t all = std::uint64_t{20} * (20 << 20);
  while (asked_for() + (8 << 20) < kMaxAheadBytes) std::this_thread::yield();
  CHECK(asked_for() <= kMaxAheadBytes);
  // Awaited bytes are fetched nevertheless, and make space for the rest.
  std::string out(20 << 20, '\0');
  for (auto each = files.rbegin(); each != files.rend(); ++each) {
    (*each)->read(0, reinterpret_cast<std::uint8_t*>(out.data()), out.size());
    CHECK(out == bytes);
  }
  CHECK(asked_for() == all);
}

TEST_CASE("remote file: without a client, or when it ends, nobody waits") {
  CHECK(error_of([] { open_remote_file(kUrl, IoMode::automatic, {}); }).kind() == ErrorKind::io);
  std::shared_ptr<const StoredFile> file;
  Error error(ErrorKind::invalid, "");
  std::thread reader;
  {
    Network network(some_bytes(1000));
    network.answers = Network::Answers::none;
    file = open_remote_file(kUrl, IoMode::automatic, options_with());
    reader = start_thread([&] {
      std::uint8_t byte;
      error = error_of([&] { file->read(5, &byte, 1); });
    });
    while (network.ranges().empty()) std::this_thread::yield();
  }
  reader.join();
  CHECK(error.message().find("the test is over.") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "remote file: many threads read and announce at once") {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.push_back(start_thread([&, seed] {
      std::uint64_t state = seed + 1;
      Announcements held;
      for (int i = 0; i < 300; ++i) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        const std::uint64_t offset = (state >> 20) % (19 << 20);
        const std::size_t count = 1 + (state >> 45) % 5000;
        const FileRange range[] = {{offset, count}};
        if (i % 3 > 0) {
          held.push_back(file->announce(range, i % 2 > 0 ? Reads::another : Reads::the_same));
        }
        if (i % 50 == 7) held.clear();
        if (read(offset, count) != expected(offset, count)) ++wrong;
      }
    }));
  }
  for (std::thread& each : threads) each.join();
  CHECK(wrong == 0);
}
