#include "shard_fixture.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "core/base/bytes.h"
#include "core/shard/framing.h"
#include "core/storage/local/file_descriptor.h"
#include "core/storage/local/local_facts.h"
#include "core/storage/storage.h"

namespace tfrfast::testing {

TemporaryFolder::TemporaryFolder() {
  path_ = (std::filesystem::temp_directory_path() / "tfrfast-test-XXXXXX").string();
  REQUIRE(::mkdtemp(path_.data()) != nullptr);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string payload(std::size_t bytes, unsigned seed) {
  std::string made(bytes, '\0');
  std::uint32_t state = seed * 2654435761u + 12345;
  for (char& byte : made) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<char>(state >> 24);
  }
  return made;
}

std::string frame_of(const std::string& payload) {
  std::string frame(kFrameOverhead + payload.size(), '\0');
  auto* bytes = reinterpret_cast<std::uint8_t*>(frame.data());
  encode_header(payload.size(), bytes);
  payload.copy(frame.data() + kHeaderBytes, payload.size());
  encode_footer(masked_crc32c(bytes + kHeaderBytes, payload.size()),
                bytes + kHeaderBytes + payload.size());
  return frame;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  // Reads all bytes at once: reading byte by byte takes minutes under the thread sanitizer.
  std::string bytes(std::filesystem::file_size(path), '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  REQUIRE(file);
  return bytes;
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  REQUIRE(file);
}

TestShard& TestShard::write_record(const std::string& payload) {
  offsets_.push_back(bytes_.size());
  payloads_.push_back(payload);
  return append(frame_of(payload));
}

TestShard& TestShard::write_records(std::size_t count, std::size_t bytes) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::string record = payload(bytes, static_cast<unsigned>(payloads_.size()));
    offsets_.push_back(bytes_.size());
    payloads_.push_back(record);
    bytes_ += frame_of(record);
  }
  write();
  return *this;
}

TestShard& TestShard::append(const std::string& bytes) {
  bytes_ += bytes;
  write();
  return *this;
}

TestShard& TestShard::insert(std::uint64_t offset, const std::string& bytes) {
  bytes_.insert(offset, bytes);
  write();
  return *this;
}

TestShard& TestShard::erase(std::uint64_t begin, std::uint64_t end) {
  bytes_.erase(begin, end - begin);
  write();
  return *this;
}

TestShard& TestShard::flip_bit(std::uint64_t offset, unsigned bit) {
  bytes_[offset] = static_cast<char>(bytes_[offset] ^ (1 << bit));
  write();
  return *this;
}

TestShard& TestShard::overwrite(std::uint64_t offset, const std::string& bytes) {
  bytes_.replace(offset, bytes.size(), bytes);
  write();
  return *this;
}

TestShard& TestShard::truncate_to(std::uint64_t bytes) {
  bytes_.resize(bytes);
  REQUIRE(::truncate(path_.c_str(), static_cast<off_t>(bytes)) == 0);
  grow_older();
  return *this;
}

TestShard& TestShard::replace_with(const std::string& bytes) {
  bytes_ = bytes;
  write_file(path_ + ".new", bytes);
  REQUIRE(std::rename((path_ + ".new").c_str(), path_.c_str()) == 0);
  grow_older();
  return *this;
}

void TestShard::write() {
  write_file(path_, bytes_);
  grow_older();
}

void TestShard::grow_older() {
  set_mtime_ns(mtime_ns() - 5 * kRecentNs);
}

TestShard& TestShard::set_mtime_to_now() {
  REQUIRE(::utimensat(AT_FDCWD, path_.c_str(), nullptr, 0) == 0);
  return *this;
}

bool TestShard::is_recent() const {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::nanoseconds(now).count() - mtime_ns() < kRecentNs;
}

std::int64_t TestShard::mtime_ns() const {
  return examine_file(path_).mtime_ns;
}

TestShard& TestShard::set_mtime_ns(std::int64_t mtime_ns) {
  const timespec time = {static_cast<time_t>(mtime_ns / 1'000'000'000),
                         static_cast<long>(mtime_ns % 1'000'000'000)};
  const timespec times[2] = {time, time};
  REQUIRE(::utimensat(AT_FDCWD, path_.c_str(), times, 0) == 0);
  return *this;
}

void give_up_descriptors() {
  while (SharedDescriptors::instance().give_up_one()) {
  }
}

void wait_for_another_ctime(const std::string& path) {
  const std::int64_t ctime_ns = ctime_ns_of(examine_file(path));
  const std::string probe = path + ".probe";
  do {
    write_file(probe, "");
  } while (ctime_ns_of(examine_file(probe)) <= ctime_ns);
  std::filesystem::remove(probe);
}

const char* name_of_io(IoMode io) {
  return io == IoMode::mapped ? "mapped" : io == IoMode::pread ? "pread" : "automatic";
}

std::shared_ptr<const Reader> open_reader(const std::vector<std::string>& paths,
                                          const Opening& opening) {
  ShardSetOptions options;
  options.io = opening.io;
  options.index = opening.index;
  options.skip_damage = opening.skip_damage;
  options.threads = opening.threads;
  return std::make_shared<const Reader>(
      ShardSet::open(paths, options),
      ReadOptions{opening.verify, opening.skip_damage, opening.threads});
}

std::vector<std::string> strings_of(const RecordBatch& batch) {
  std::vector<std::string> all;
  for (std::size_t row = 0; row < batch.size(); ++row) {
    all.emplace_back(batch[row].begin(), batch[row].end());
  }
  return all;
}

std::string read_record(const Reader& reader, std::uint64_t record) {
  const auto number = static_cast<std::int64_t>(record);
  return strings_of(*reader.read({&number, 1})).at(0);
}

std::vector<std::string> read_all(const Reader& reader) {
  Reader::Range range = reader.read_range(0, reader.record_count());
  if (range.error) throw *range.error;
  return strings_of(*range.batch);
}

Error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  FAIL("an Error was expected, and none was thrown");
  return Error(ErrorKind::invalid, "");
}

std::string refusal(const std::function<void()>& action) {
  const Error error = error_of(action);
  CHECK(error.kind() == ErrorKind::invalid);
  return error.message();
}

bool holds(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("'", part, "' is missing in: ", text);
  return found;
}

namespace {

// Whether all other threads of this process sleep.
bool others_sleep() {
  const std::string own = std::to_string(::gettid());
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == own) continue;
    std::ifstream file(task.path() / "stat");
    const std::string stat{std::istreambuf_iterator<char>(file), {}};
    const auto name_end = stat.rfind(") ");  // a thread that has ended has an empty `stat`
    if (name_end != std::string::npos && stat[name_end + 2] != 'S') return false;
  }
  return true;
}

// A thread whose work is done may still be freeing memory.
void wait_for_sleep() {
  for (int times = 0; times < 3; times = others_sleep() ? times + 1 : 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

int status_of(pid_t child) {
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

pid_t start_child(const std::function<int()>& body) {
  std::fflush(nullptr);
  if (!kAllocatorSurvivesFork) wait_for_sleep();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(kPatienceSeconds);  // kills a hanging child
    int status = 99;
    try {
      status = body();
    } catch (...) {
    }
    ::_exit(status);
  }
  return child;
}

int run_in_child(const std::function<int()>& body) {
  return status_of(start_child(body));
}

namespace {

// Starts this program again in this process. A program for another processor runs in an emulator.
// An environment variable names the emulator.
void become_test_case(const std::string& name) {
  const std::string filter = "--test-case=" + name;
  if (const char* emulator = std::getenv("TFRFAST_TEST_EMULATOR"); emulator != nullptr) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string command = "exec " + std::string(emulator) + " \"$0\" \"$@\"";
    ::execl("/bin/sh", "sh", "-c", command.c_str(), self.c_str(), filter.c_str(), "--no-skip",
            "--minimal", nullptr);
  } else {
    ::execl("/proc/self/exe", "core_tests", filter.c_str(), "--no-skip", "--minimal", nullptr);
  }
}

}  // namespace

int run_test_case_in_process(const std::string& name) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(kPatienceSeconds);
    become_test_case(name);
    ::_exit(98);
  }
  return status_of(child);
}

bool meet(std::atomic<int>& inside, int count) {
  ++inside;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
  while (inside < count && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return inside >= count;
}

Environment::Environment(const char* name, const std::string& value) : name_(name) {
  const char* before = std::getenv(name);
  was_set_ = before != nullptr;
  if (was_set_) before_ = before;
  ::setenv(name, value.c_str(), 1);
}

Environment::~Environment() {
  if (was_set_) {
    ::setenv(name_, before_.c_str(), 1);
  } else {
    ::unsetenv(name_);
  }
}

}  // namespace tfrfast::testing
