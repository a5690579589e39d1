// A core writer as Python sees it.
#pragma once

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/write/shard_writer.h"
#include "core/write/sharded_writer.h"
#include "python/constructed.h"
#include "python/payload.h"

namespace tfrfast::python {

namespace py = pybind11;

inline constexpr std::size_t kBatchRows = 4096;  // between two chances for other threads to write

inline void close_writer(ShardWriter& writer, bool durable) {
  writer.finish();
  writer.publish();
  if (!durable) return;
  flush_folder(folder_of(writer.path()));
  if (!writer.index_path().empty()) flush_folder(folder_of(writer.index_path()));
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

// A core writer for many Python threads. Nobody waits for the mutex with the GIL held. In a forked
// child it can be asked about and let go of, no more: a thread that is not there may hold the
// mutex.
template <class Core>
class Output {
 public:
  Output(std::unique_ptr<Core> core, bool durable) : core_(std::move(core)), durable_(durable) {}

  void write(py::handle record) {
    const Payload payload(record);
    {
      // Most records only go into the buffer: quicker than giving the GIL away and getting it back.
      const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
      if (lock.owns_lock() && core_ != nullptr && core_->has_room(payload.bytes().size())) {
        core_->write(payload.bytes());
        return;
      }
    }
    const py::gil_scoped_release release;
    const auto lock = hold();
    open().write(payload.bytes());
  }

  void write_batch(const py::object& records) {
    if (py::isinstance<RecordBatch>(records)) {
      const auto batch = records.cast<std::shared_ptr<const RecordBatch>>();
      const py::gil_scoped_release release;
      for (std::size_t first = 0; first < batch->size(); first += kBatchRows) {
        const auto lock = hold();
        open().write(*batch, first, std::min(first + kBatchRows, batch->size()));
      }
      return;
    }
    if (PyBytes_Check(records.ptr()) || PyUnicode_Check(records.ptr())) {
      throw py::type_error("write_batch takes many records; write takes one.");
    }
    for (const py::handle record : records) write(record);
  }

  void close() {
    const py::gil_scoped_release release;
    const auto lock = hold();
    if (core_ == nullptr) return;
    const std::unique_ptr<Core> closing = take();
    close_writer(*closing, durable_);
    remember(*closing);
  }

  void abort() {
    const py::gil_scoped_release release;
    const auto lock = in_child() ? std::unique_lock<std::mutex>() : hold();
    if (core_ != nullptr) take();
  }

  // Calls work(core) without the GIL. Throws Error closed.
  template <class Work>
  auto use(const Work& work) {
    const py::gil_scoped_release release;
    const auto lock = hold();
    return work(open());
  }

  bool closed() {
    return with_core([](const Core* core) { return core == nullptr; });
  }
  std::uint64_t record_count() {
    return with_core([this](const Core* core) {
      return core == nullptr ? record_count_ : core->record_count();
    });
  }
  std::uint64_t bytes() {
    return with_core([this](const Core* core) { return core == nullptr ? bytes_ : core->bytes(); });
  }
  std::vector<std::string> paths() {
    return with_core(
        [this](const Core* core) { return core == nullptr ? paths_ : paths_of(*core); });
  }

 private:
  bool in_child() const { return ::getpid() != owner_; }
  std::unique_lock<std::mutex> hold() {
    if (!in_child()) return std::unique_lock<std::mutex>(mutex_);
    if (core_ != nullptr) refuse_in_child(owner_, paths_of(*core_).front());
    return {};
  }
  Core& open() {
    if (core_ == nullptr) throw Error(ErrorKind::closed, "This writer has been closed.");
    return *core_;
  }
  std::unique_ptr<Core> take() {
    remember(*core_);
    return std::exchange(core_, nullptr);
  }
  void remember(const Core& core) {
    record_count_ = core.record_count();
    bytes_ = core.bytes();
    paths_ = paths_of(core);
  }
  template <class Ask>
  auto with_core(const Ask& ask) {
    const py::gil_scoped_release release;
    const auto lock = in_child() ? std::unique_lock<std::mutex>() : hold();
    return ask(core_.get());
  }

  std::mutex mutex_;
  std::unique_ptr<Core> core_;
  const int owner_ = ::getpid();
  bool durable_;
  std::uint64_t record_count_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<std::string> paths_;
};

}  // namespace tfrfast::python

template <class Core>
class pybind11::detail::type_caster<tfrfast::python::Output<Core>>
    : public tfrfast::python::ConstructedOnly<tfrfast::python::Output<Core>> {};
