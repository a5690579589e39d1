#include "core/storage/local/pages_ahead.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <utility>

#include "core/base/process.h"
#include "core/base/thread.h"
#include "core/storage/local/file_descriptor.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kPieceBytes = 1 << 20;
// Fewer bytes may be two records that happen to be neighbours.
constexpr std::uint64_t kMinInOrder = 256 << 10;

bool read_piece(int file, std::uint64_t at, std::uint8_t* out, std::uint64_t count) {
  ssize_t got;
  do {
    got = ::pread(file, out, count, static_cast<off_t>(at));
  } while (got < 0 && errno == EINTR);
  return got > 0;
}

}  // namespace

// The state of one file.
struct PagesAhead::Course {
  Course(const std::string& of_path, std::uint64_t of_bytes) : path(of_path), bytes(of_bytes) {}

  const std::string path;
  const std::uint64_t bytes;
  const HomeProcess home = {};
  // The last ranges: many threads announce nearly in order.
  std::array<FileRange, 8> recent = {};
  std::size_t next = 0;
  std::uint64_t in_order = 0;  // the bytes of ranges that were announced in order
  std::uint64_t begin = 0;     // [begin, end) is still to be read
  std::uint64_t end = 0;
  bool is_queued = false;  // or is being read
  bool is_lost = false;    // could not be read

  bool is_running() const noexcept { return end > 0 && end < bytes; }

  // Moves `end`, and perhaps `begin`. False if the range is not in order.
  bool come_to(const FileRange& range) noexcept {
    const std::uint64_t range_end = range.offset + range.bytes;
    const bool continues =
        range.offset == 0 || std::any_of(recent.begin(), recent.end(), [&](const FileRange& each) {
          return each.offset + each.bytes == range.offset || each.offset == range_end;
        });
    recent[next++ % recent.size()] = range;
    in_order = continues ? in_order + range.bytes : in_order / 4 * 3;
    if (in_order < kMinInOrder) return leave(), false;
    if (!continues) return false;
    const bool is_elsewhere =
        range.offset == 0 || range.offset > end || begin > range_end + 2 * kMaxAhead;
    if (is_elsewhere) begin = end = range.offset;
    // The file is opened for each stretch, so stretches are long.
    const std::uint64_t ahead = std::min(in_order, kMaxAhead);
    if (end < std::min(bytes, range_end + ahead / 2)) end = std::min(bytes, range_end + ahead);
    return true;
  }

  void leave() noexcept { begin = end = 0; }
};

class PagesAhead::Threads {
 public:
  static Threads& instance() { return one_per_process<Threads>(); }

  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  // Call under the lock. Throws if memory or threads are short.
  void add(const std::shared_ptr<Course>& course) {
    if (idle_ <= queue_.size() && count_ < kThreads) {
      start_thread([this] { work(); }).detach();
      ++count_;
    }
    queue_.push_back(course);
    course->is_queued = true;
    changed_.notify_one();
  }

 private:
  void work() {
    const std::unique_ptr<std::uint8_t[]> scratch(new (std::nothrow) std::uint8_t[kPieceBytes]);
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      changed_.wait(lock, [this] { return !queue_.empty(); });
      --idle_;
      const std::shared_ptr<Course> course = std::move(queue_.front());
      queue_.pop_front();
      if (scratch == nullptr || !read(*course, lock, scratch.get())) course->is_lost = true;
      course->is_queued = false;
    }
  }

  // The bytes themselves are not wanted. False after an error, which a reader will report.
  static bool read(Course& course, std::unique_lock<std::mutex>& lock, std::uint8_t* scratch) {
    lock.unlock();
    try {
      const FileDescriptor file(course.path);
      lock.lock();
      bool is_read = true;
      while (is_read && course.begin < course.end) {
        const std::uint64_t at = course.begin;
        const std::uint64_t count = std::min(course.end - at, kPieceBytes);
        course.begin += count;
        lock.unlock();
        is_read = read_piece(file.get(), at, scratch, count);
        lock.lock();
      }
      return is_read;
    } catch (const std::exception&) {
      lock.lock();  // the file could not be opened
      return false;
    }
  }

  std::mutex mutex_;  // guards the other members, and the courses of all files
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Course>> queue_;
  unsigned count_ = 0;
  unsigned idle_ = 0;
};

PagesAhead::~PagesAhead() {
  leave();
}

void PagesAhead::leave() noexcept {
  if (!is_running()) return;
  try {
    const auto lock = Threads::instance().lock();
    if (course_ != nullptr) course_->leave();
    is_running_.store(false, std::memory_order_relaxed);
  } catch (const std::exception&) {
    // A forked child without memory.
  }
}

bool PagesAhead::take(const FileRange& announced) noexcept {
  if (announced.offset >= bytes_) return leave(), false;
  try {
    Threads& threads = Threads::instance();
    const auto lock = threads.lock();
    if (course_ == nullptr || !course_->home.is_this_one()) {
      course_ = std::make_shared<Course>(path_, bytes_);
    }
    const FileRange range{announced.offset, std::min(announced.bytes, bytes_ - announced.offset)};
    const bool is_in_order = course_->come_to(range);
    if (course_->is_lost) course_->leave();
    is_running_.store(course_->is_running(), std::memory_order_relaxed);
    if (course_->begin < course_->end && !course_->is_queued) threads.add(course_);
    return is_in_order && !course_->is_lost;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace tfrfast
