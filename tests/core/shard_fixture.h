// Verbs for tests: a folder that goes away, and a shard that is written, damaged and read.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/index/opening.h"
#include "core/read/reader.h"
#include "core/storage/local/local_facts.h"
#include "core/storage/stored_file.h"

namespace tfrfast::testing {

// A new folder, which is removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Bytes that depend on `seed`, unlike any header.
std::string payload(std::size_t bytes, unsigned seed = 0);
std::string frame_of(const std::string& payload);

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& bytes);

// A shard under construction: its bytes in memory, written to `path` by each verb. Its
// modification time is always some seconds ago, so that it does not count as recent.
class TestShard {
 public:
  explicit TestShard(std::string path) : path_(std::move(path)) { write(); }

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return bytes_.size(); }
  const std::string& bytes() const { return bytes_; }
  std::size_t records() const { return payloads_.size(); }
  const std::string& record(std::size_t number) const { return payloads_[number]; }
  std::uint64_t offset(std::size_t number) const { return offsets_[number]; }

  TestShard& write_record(const std::string& payload);
  TestShard& write_records(std::size_t count, std::size_t bytes);  // of differing contents
  TestShard& append(const std::string& bytes);
  TestShard& insert(std::uint64_t offset, const std::string& bytes);
  TestShard& erase(std::uint64_t begin, std::uint64_t end);
  TestShard& flip_bit(std::uint64_t offset, unsigned bit = 0);
  TestShard& overwrite(std::uint64_t offset, const std::string& bytes);
  TestShard& truncate_to(std::uint64_t bytes);  // of the file itself, which stays the same one
  TestShard& replace_with(const std::string& bytes);  // by another file of the same name
  std::int64_t mtime_ns() const;
  TestShard& set_mtime_ns(std::int64_t mtime_ns);
  TestShard& set_mtime_to_now();

 private:
  void write();
  void grow_older();

  std::string path_;
  std::string bytes_;
  std::vector<std::string> payloads_;
  std::vector<std::uint64_t> offsets_;
};

// Closes all descriptors that files read by pread share. The next read opens the file by name
// again.
void give_up_descriptors();

// Returns when a change of the file would give it another ctime, however slowly the clock ticks.
void wait_for_another_ctime(const std::string& path);

// Takes back what assume_versions_last() was told.
struct AssumedToLast {
  AssumedToLast() = default;
  AssumedToLast(const AssumedToLast&) = delete;
  AssumedToLast& operator=(const AssumedToLast&) = delete;
  ~AssumedToLast() { assume_versions_last({}); }
};

// Calls check(io) for both ways to read.
template <class Check>
void for_each_io(const Check& check) {
  check(IoMode::mapped);
  check(IoMode::pread);
}
const char* name_of_io(IoMode io);

// How a reader is opened in tests: in memory unless said otherwise.
struct Opening {
  IoMode io = IoMode::mapped;
  Verify verify = Verify::full;
  bool skip_damage = false;
  unsigned threads = 2;
  IndexOptions index = {IndexUse::memory, "", {}};
};
std::shared_ptr<const Reader> open_reader(const std::vector<std::string>& paths,
                                          const Opening& opening = {});

std::vector<std::string> strings_of(const RecordBatch& batch);
std::string read_record(const Reader& reader, std::uint64_t record);
std::vector<std::string> read_all(const Reader& reader);

// The Error that `action` throws; a failed check if it throws none.
Error error_of(const std::function<void()>& action);
bool holds(const std::string& text, const std::string& part);

// The sanitizers' allocators do not handle fork: a child forked while another thread allocates
// finds their locks held forever. So do the locks of an emulator. The C library's allocator handles
// it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(TFRFAST_TEST_EMULATED)
inline constexpr bool kAllocatorSurvivesFork = false;
#else
inline constexpr bool kAllocatorSurvivesFork = true;
#endif

// Starts `body` in a forked child. If other threads may allocate meanwhile, only with
// kAllocatorSurvivesFork. Otherwise it waits for threads that still tidy up after a test.
pid_t start_child(const std::function<int()>& body);
// The exit status of a child, or minus the signal that killed it.
int status_of(pid_t child);
int run_in_child(const std::function<int()>& body);
// Runs the test case `name` of this program, decorated with doctest::skip(), in a fresh process.
int run_test_case_in_process(const std::string& name);

// Waits until `count` threads have come here. False if they do not come.
bool meet(std::atomic<int>& inside, int count);

// Sets an environment variable for as long as it lives.
class Environment {
 public:
  Environment(const char* name, const std::string& value);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::string before_;
  bool was_set_;
};

}  // namespace tfrfast::testing

#define FOR_EACH_IO(io)                                              \
  for (const ::tfrfast::IoMode io : {IoMode::mapped, IoMode::pread}) \
    if (INFO("io: ", std::string(::tfrfast::testing::name_of_io(io))); true)
