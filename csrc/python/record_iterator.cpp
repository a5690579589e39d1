#include "python/record_iterator.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/process.h"
#include "core/read/record_source.h"
#include "python/byte_view.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

// Large enough to keep the threads busy, small enough for the cache.
constexpr std::uint64_t kBatchBytes = 1 << 20;
constexpr std::uint64_t kBatchRecords = 8192;
// Over a network, large requests run at the same time.
constexpr std::uint64_t kRemoteBatchBytes = 8 << 20;
constexpr std::uint64_t kRemoteBatchRecords = 1 << 17;
// Shards may be small, so bytes are requested ahead, between these limits: never more bytes than
// were read so far.
constexpr std::uint64_t kMinAheadBytes = 32 << 20;
constexpr std::uint64_t kMaxAheadBytes = 128 << 20;

std::vector<std::int64_t> numbers(std::uint64_t begin, std::uint64_t end) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(end - begin));
  std::iota(result.begin(), result.end(), static_cast<std::int64_t>(begin));
  return result;
}

// Announces the next records. Opens remote shards at the same time, and so throws the exceptions of
// the thread's WaitCheck.
void announce_ahead(const RecordSource& reader, std::uint64_t begin, AnnouncedAhead& ahead_of) {
  const std::uint64_t mean = reader.mean_record_bytes() + 1;
  const std::uint64_t least = kMinAheadBytes / mean + 1;
  const std::uint64_t most = std::min(kMaxAheadBytes / mean + 1, kRemoteBatchRecords);
  const std::uint64_t ahead = std::clamp(begin, std::min(least, most), most);
  const std::uint64_t end = std::min(reader.record_count(), begin + ahead);
  ahead_of.come_to(begin);
  const std::uint64_t announced = std::max(ahead_of.end(), begin);
  // Make few large announcements, so that neighbours share requests.
  if (announced >= end || (announced - begin > ahead / 2 && end < reader.record_count())) return;
  ReadAhead read_ahead(reader.mean_record_bytes(), true);
  ahead_of.add(end, reader.announce(numbers(announced, end), read_ahead).files);
}

}  // namespace

struct RecordIterator::Ahead {
  explicit Ahead(std::shared_ptr<const RecordSource> of) : reader(std::move(of)) {}
  const std::shared_ptr<const RecordSource> reader;
  AnnouncedAhead records;
};

// A batch being read by the thread that made this object. Other threads wait for the batch.
class RecordIterator::Reading {
 public:
  Reading(std::shared_ptr<Ahead> ahead, std::uint64_t begin)
      : ahead_(std::move(ahead)), reader_(ahead_->reader), begin_(begin) {}

  bool is_of_this_process() const { return home_.is_this_one(); }
  std::uint64_t record_count() const { return reader_->record_count(); }

  // Call without the GIL.
  void run() noexcept {
    RecordSource::Range range;
    std::exception_ptr failure;
    try {
      const bool is_remote = reader_->is_remote();
      if (is_remote) announce_ahead(*reader_, begin_, ahead_->records);
      std::uint64_t end = reader_->range_end(begin_, is_remote ? kRemoteBatchBytes : kBatchBytes,
                                             is_remote ? kRemoteBatchRecords : kBatchRecords);
      if (is_remote) end = std::min(end, ahead_->records.end());
      range = reader_->read_range(begin_, end, is_remote);
    } catch (...) {
      failure = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      range_ = std::move(range);
      failure_ = std::move(failure);
      done_ = true;
    }
    is_done_.notify_all();
  }

  // Call without the GIL.
  void wait() {
    std::unique_lock lock(mutex_);
    is_done_.wait(lock, [this] { return done_; });
  }

  // Call once after the reading, with the GIL, on one thread.
  RecordSource::Range take() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return std::move(range_);
  }

 private:
  const HomeProcess home_;
  const std::shared_ptr<Ahead> ahead_;
  const std::shared_ptr<const RecordSource> reader_;
  const std::uint64_t begin_;
  std::mutex mutex_;
  std::condition_variable is_done_;
  bool done_ = false;
  RecordSource::Range range_;
  std::exception_ptr failure_;
};

RecordIterator::RecordIterator(py::object reader)
    : owner_(std::move(reader)), reader_(owner_.cast<const PythonReader&>()) {
  reader_.get();
}

py::bytes RecordIterator::next() {
  reader_.get();
  while (row_ == rows()) {
    if (error_) throw *std::exchange(error_, std::nullopt);
    read_on();
  }
  py::bytes record = to_bytes((*batch_)[row_]);  // may throw, and the record comes again
  ++row_;
  return record;
}

void RecordIterator::read_on() {
  batch_ = nullptr;  // frees the memory for the next batch
  row_ = 0;
  const bool is_ours = reading_ == nullptr || !reading_->is_of_this_process();
  if (is_ours) {
    const std::shared_ptr<const RecordSource>& reader = reader_.get();
    if (next_ == reader->record_count()) throw py::stop_iteration();
    // A thread that does not exist in this process may have left `ahead_` half changed.
    if (ahead_ == nullptr || reading_ != nullptr) ahead_ = std::make_shared<Ahead>(reader);
    reading_ = std::make_shared<Reading>(ahead_, next_);
  }
  const std::shared_ptr<Reading> reading = reading_;
  {
    const WithoutGil without_gil;
    if (is_ours) {
      reading->run();
    } else {
      reading->wait();
    }
  }
  if (reading_ != reading) return;  // another thread was first
  reading_ = nullptr;
  // A failure that is not a single record's, such as a damaged index, ends the iteration.
  next_ = reading->record_count();
  RecordSource::Range range = reading->take();
  batch_ = std::move(range.batch);
  error_ = std::move(range.error);
  next_ = range.next;
}

}  // namespace tfrfast::python
