// A core writer of shards for Python.
#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/storage/local/folders.h"
#include "core/write/shard_writer.h"
#include "core/write/sharded_writer.h"
#include "python/shared_writer.h"
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

// After close(), the numbers and paths of the written shards are still known.
template <class Core>
class Output {
 public:
  Output(std::unique_ptr<Core> core, std::string name, bool durable)
      : durable_(durable), writer_(std::move(core), std::move(name)) {}

  void write(py::handle record) { writer_.write(record); }

  void write_batch(const py::object& records) {
    if (py::isinstance<RecordBatch>(records)) {
      const auto batch = records.cast<std::shared_ptr<const RecordBatch>>();
      const WithoutGil without_gil;
      for (std::size_t first = 0; first < batch->size(); first += kBatchRows) {
        writer_.use_without_gil([&](Core& core) {
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

  void close() {
    writer_.finish([this](Core& core) {
      remember(core);
      close_writer(core, durable_);
      remember(core);
    });
  }

  void abort() {
    const WithoutGil without_gil;
    writer_.forget([this](const Core& core) { remember(core); });
  }

  // Returns work(core), called without the GIL. Throws Error closed.
  template <class Work>
  auto use(const Work& work) {
    return writer_.use(work);
  }

  bool is_of_this_process() const noexcept { return writer_.is_of_this_process(); }
  bool closed() { return writer_.closed(); }
  std::uint64_t record_count() {
    return writer_.ask([this](const Core* core) {
      return core == nullptr ? record_count_ : core->record_count();
    });
  }
  std::uint64_t bytes() {
    return writer_.ask(
        [this](const Core* core) { return core == nullptr ? bytes_ : core->bytes(); });
  }
  std::vector<std::string> paths() {
    return writer_.ask(
        [this](const Core* core) { return core == nullptr ? paths_ : paths_of(*core); });
  }

 private:
  void remember(const Core& core) {
    record_count_ = core.record_count();
    bytes_ = core.bytes();
    paths_ = paths_of(core);
  }

  const bool durable_;
  std::uint64_t record_count_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<std::string> paths_;
  SharedWriter<Core> writer_;
};

}  // namespace tfrfast::python
