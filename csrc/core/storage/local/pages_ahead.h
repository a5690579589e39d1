// Reads a file that is read in order into the page cache, ahead of its readers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/storage/stored_file.h"

namespace tfrfast {

// One for each file that may be read in order. If one thread reads a file from begin to end with a
// descriptor of its own, the kernel reads ahead in large pages and long requests, which takes a
// third of the processor time of advice about many ranges. Several threads that read one file
// confuse the kernel. So each file has one thread at a time, from a pool of kThreads threads of the
// process. Safe from many threads.
class PagesAhead {
 public:
  static constexpr unsigned kThreads = 2;
  // The threads read at most this far beyond an announced range, and at most as many bytes as were
  // announced in order: a look at one batch does not read many batches.
  static constexpr std::uint64_t kMaxAhead = std::uint64_t{32} << 20;

  // `path` must outlive the object, and name the file in every folder.
  PagesAhead(const std::string& path, std::uint64_t bytes) : path_(path), bytes_(bytes) {}
  ~PagesAhead();
  PagesAhead(const PagesAhead&) = delete;
  PagesAhead& operator=(const PagesAhead&) = delete;

  // Takes over the announcement of a range, if the file is read in order. False if the caller
  // should advise the system.
  bool take(const FileRange& range) noexcept;
  // The file is not read in order now.
  void leave() noexcept;
  // Whether the rest of the file should be announced, too, although it may be in memory.
  bool is_running() const noexcept { return is_running_.load(std::memory_order_relaxed); }

 private:
  class Threads;
  struct Course;

  const std::string& path_;
  const std::uint64_t bytes_;
  std::atomic<bool> is_running_{false};
  std::shared_ptr<Course> course_;  // null before the first announcement; guarded by the threads
};

}  // namespace tfrfast
