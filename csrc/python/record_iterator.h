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

// The records before a damaged one arrive before its error. Asked again, it goes on after that
// record. Threads may share it: each record goes to one of them, and at the end all of them stop. A
// forked child has its own, which goes on where the parent was.
//
// The GIL is its lock, so that a child never inherits a held one: every change is made with the
// GIL, and only the reading is done without. The first thread that gets the GIL takes what was
// read, so no thread depends on the one that read it.
class RecordIterator {
 public:
  // Throws Error closed.
  explicit RecordIterator(pybind11::object reader);

  // Throws stop_iteration.
  pybind11::bytes next();

 private:
  class Reading;
  struct Ahead;

  std::size_t rows() const { return batch_ == nullptr ? 0 : batch_->size(); }
  void read_on();

  const pybind11::object owner_;  // of the reader
  const OpenReader& reader_;
  std::shared_ptr<Reading> reading_;  // while a thread is reading
  std::shared_ptr<const RecordBatch> batch_;
  std::optional<Error> error_;  // after the batch
  std::size_t row_ = 0;
  std::uint64_t next_ = 0;
  std::shared_ptr<Ahead> ahead_;  // what has been asked for, by the thread that is reading
};

}  // namespace tfrfast::python
