// A reader's records in order, read a batch at a time.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "core/read/record_batch.h"
#include "python/open_reader.h"

namespace tfrfast::python {

// What lies before a damaged record arrives before its error; asked again, it goes on after that
// record. Threads may share it: each record goes to one of them, and the end ends all. A forked
// child has its own, which goes on where the parent stood.
//
// The GIL is its lock, so that a child never inherits it held: every change is made with the GIL,
// and only reading is done without. Whoever gets the GIL first takes what was read, so that nobody
// depends on the thread that read it.
class RecordIterator {
 public:
  explicit RecordIterator(const OpenReader& reader) : reader_(reader) {}

  // Throws stop_iteration.
  pybind11::bytes next();

 private:
  class Reading;

  std::size_t rows() const { return batch_ == nullptr ? 0 : batch_->size(); }
  void read_on();

  const OpenReader& reader_;          // kept alive by the binding
  std::shared_ptr<Reading> reading_;  // if a thread is at it
  std::shared_ptr<const RecordBatch> batch_;
  std::optional<Error> error_;  // after the batch
  std::size_t row_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace tfrfast::python
