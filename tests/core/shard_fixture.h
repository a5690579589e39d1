// Verbs for tests: a temporary folder, and a shard to write, damage and read.
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

// A new folder. The destructor removes the folder and its contents.
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
  TestShard& write_records(std::size_t count, std::size_t bytes);  // with different contents
  TestShard& append(const std::string& bytes);
  TestShard& insert(std::uint64_t offset, const std::string& bytes);
  TestShard& erase(std::uint64_t begin, std::uint64_t end);
  TestShard& flip_bit(std::uint64_t offset, unsigned bit = 0);
  TestShard& overwrite(std::uint64_t offset, const std::string& bytes);
  TestShard& truncate_to(std::uint64_t bytes);        // keeps the inode
  TestShard& replace_with(const std::string& bytes);  // by a new file of the same name
  std::int64_t mtime_ns() const;
  TestShard& set_mtime_ns(std::int64_t mtime_ns);
  TestShard& set_mtime_to_now();
  // Whether an index would count the shard as modified just now.
  bool is_recent() const;

 private:
  void write();
  void grow_older();

  std::string path_;
  std::string bytes_;
  std::vector<std::string> payloads_;
  std::vector<std::uint64_t> offsets_;
};

// Closes the shared descriptors of all files that are read by pread. The next read opens the file
// by name again.
void give_up_descriptors();

// Waits until a change of the file would give the file another ctime, even if the clock ticks
// slowly.
void wait_for_another_ctime(const std::string& path);

// The longest wait for another thread or process. It finds hangs, and judges no speed.
inline constexpr unsigned kPatienceSeconds = 600;

// Ends the effect of assume_versions_last().
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

// The options of a reader in tests. By default, indexes stay in memory.
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

// Returns the Error that `action` throws. Fails the test if `action` throws none.
Error error_of(const std::function<void()>& action);
// Returns the message of that Error, which must be of the kind `invalid`.
std::string refusal(const std::function<void()>& action);
bool holds(const std::string& text, const std::string& part);

// The sanitizers' allocators do not handle fork: if a child is forked while another thread
// allocates, the child finds a lock held forever. The same holds for an emulator's locks. The C
// library's allocator handles fork.
#if defined(TFRFAST_TEST_SANITIZED) || defined(TFRFAST_TEST_EMULATED)
inline constexpr bool kAllocatorSurvivesFork = false;
#else
inline constexpr bool kAllocatorSurvivesFork = true;
#endif

// Starts `body` in a forked child. If other threads may allocate meanwhile, call this only with
// kAllocatorSurvivesFork. Otherwise waits for threads that still free memory after a test.
pid_t start_child(const std::function<int()>& body);
// The exit status of a child, or minus the signal that killed it.
int status_of(pid_t child);
int run_in_child(const std::function<int()>& body);
// Runs the test case `name` of this program, decorated with doctest::skip(), in a fresh process.
int run_test_case_in_process(const std::string& name);

// Waits until `count` threads have called this function. False if the wait takes too long.
bool meet(std::atomic<int>& inside, int count);

// Sets an environment variable while the object lives.
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
