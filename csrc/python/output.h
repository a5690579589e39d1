// A core writer of shards for Python, which many threads share.
#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/process.h"
#include "core/storage/local/folders.h"
#include "core/write/shard_writer.h"
#include "core/write/sharded_writer.h"
#include "python/payload.h"
#include "python/without_gil.h"

namespace tfrfast::python {

namespace py = pybind11;

// Other threads may write after each run of this many rows.
inline constexpr std::size_t kBatchRows = 4096;

inline void close_writer(ShardWriter& writer, bool durable) {
  writer.finish();
  writer.publish();
  if (!durable) return;
  flush_folder(folder_of(writer.path()));
  if (!writer.index_folder().empty()) flush_folder(writer.index_folder());
}

inline void close_writer(ShardedWriter& writer, bool) {
  writer.close();
}

inline std::vector<std::string> paths_of(const ShardWriter& writer) {
  return {writer.path()};
}

inline std::vector<std::string> paths_of(const ShardedWriter& writer) {
  return writer.paths();
}

// No thread waits for the mutex while holding the GIL. In a forked child, a thread that does not
// exist there may hold the mutex forever. So the child never waits for the mutex: abort() and the
// destructor work, and calls that write throw Error closed at once.
//
// After close(), the numbers and paths of the written shards are still known.
template <class Core>
class Output {
 public:
  // `name` names the written file or files in messages.
  Output(std::unique_ptr<Core> core, std::string name, bool durable)
      : durable_(durable), name_(std::move(name)), core_(std::move(core)) {}
  ~Output() { forget(false); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(py::handle record) {
    const Payload payload(record);
    if (home_.is_this_one()) {
      // Most records only go into the buffer, which is faster than releasing and taking the GIL.
      const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
      if (lock.owns_lock() && core_ != nullptr && core_->has_space(payload.bytes().size())) {
        core_->write(payload.bytes());
        return;
      }
    }
    use([&payload](Core& core) { core.write(payload.bytes()); });
  }

  void write_batch(const py::object& records) {
    if (py::isinstance<RecordBatch>(records)) {
      const auto batch = records.cast<std::shared_ptr<const RecordBatch>>();
      const WithoutGil without_gil;
      for (std::size_t first = 0; first < batch->size(); first += kBatchRows) {
        use_without_gil([&](Core& core) {
          core.write(*batch, first, std::min(first + kBatchRows, batch->size()));
        });
      }
      return;
    }
    if (PyBytes_Check(records.ptr()) || PyUnicode_Check(records.ptr())) {
      throw py::type_error("write_batch takes many records; write takes one.");
    }
    const auto iterator = py::reinterpret_steal<py::object>(
        call_python([&] { return PyObject_GetIter(records.ptr()); }));
    if (!iterator) throw py::error_already_set();
    for (;;) {
      const auto record = py::reinterpret_steal<py::object>(
          call_python([&] { return PyIter_Next(iterator.ptr()); }));
      if (!record) break;
      write(record);
    }
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  }

  // Returns work(core), called without the GIL. Throws Error closed.
  template <class Work>
  auto use(const Work& work) {
    const WithoutGil without_gil;
    return use_without_gil(work);
  }

  // Does nothing if the writer is closed.
  void close() {
    const WithoutGil without_gil;
    const auto lock = hold();
    const std::unique_ptr<Core> last = std::move(core_);
    if (last == nullptr) return;
    remember(*last);
    close_writer(*last, durable_);
    remember(*last);
  }

  // Closes the writer without finishing anything, also in a forked child.
  void abort() {
    const WithoutGil without_gil;
    forget(true);
  }

  bool is_of_this_process() const noexcept { return home_.is_this_one(); }
  bool closed() {
    const WithoutGil without_gil;
    const auto lock = hold_if_possible();
    return core_ == nullptr;
  }

  // A forked child may ask unless another thread held the mutex at the fork. Then the functions
  // throw Error closed.
  std::uint64_t record_count() {
    return ask([this] { return core_ == nullptr ? record_count_ : core_->record_count(); });
  }
  std::uint64_t bytes() {
    return ask([this] { return core_ == nullptr ? bytes_ : core_->bytes(); });
  }
  std::vector<std::string> paths() {
    return ask([this] { return core_ == nullptr ? paths_ : paths_of(*core_); });
  }

 private:
  template <class Work>
  auto use_without_gil(const Work& work) {
    const auto lock = hold();
    if (core_ == nullptr) throw Error(ErrorKind::closed, "This writer has been closed.");
    return work(*core_);
  }

  template <class Ask>
  auto ask(const Ask& ask) {
    const WithoutGil without_gil;
    const auto lock = hold_if_possible();
    if (!lock.owns_lock()) home_.refuse_in_child(name_);
    return ask();
  }

  // Remembering needs memory, which a destructor may not lack.
  void forget(bool remembers) {
    const auto lock = hold_if_possible();
    if (lock.owns_lock()) {
      const std::unique_ptr<Core> last = std::move(core_);
      if (last != nullptr && remembers) remember(*last);
    } else {
      // A thread that does not exist here may have left the writer half changed: leak the writer.
      (void)core_.release();
    }
  }

  void remember(const Core& core) {
    record_count_ = core.record_count();
    bytes_ = core.bytes();
    paths_ = paths_of(core);
  }

  std::unique_lock<std::mutex> hold() {
    auto lock = hold_if_possible();
    if (core_ != nullptr) home_.refuse_in_child(name_);
    return lock;
  }
  std::unique_lock<std::mutex> hold_if_possible() {
    if (home_.is_this_one()) return std::unique_lock<std::mutex>(mutex_);
    return std::unique_lock<std::mutex>(mutex_, std::try_to_lock);
  }

  const bool durable_;
  std::uint64_t record_count_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<std::string> paths_;
  const HomeProcess home_;
  const std::string name_;
  std::mutex mutex_;
  std::unique_ptr<Core> core_;
};

}  // namespace tfrfast::python
