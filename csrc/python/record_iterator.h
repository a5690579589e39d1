// Gives a reader's records in order, read in batches.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "core/read/record_batch.h"
#include "python/python_reader.h"

namespace tfrfast::python {

// Records before a damaged record come before its error, and the next call continues after it.
// Threads may share an iterator: each record goes to one thread, and at the end all threads stop. A
// forked child has its own copy, which continues at the parent's place.
//
// The GIL is the iterator's lock, so a child never inherits a held lock. Every change is made with
// the GIL, and only reading is done without the GIL. The first thread that gets the GIL takes the
// batch, so no thread depends on the thread that read.
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

  const pybind11::object owner_;  // owns the reader
  const PythonReader& reader_;
  std::shared_ptr<Reading> reading_;  // while a thread is reading
  std::shared_ptr<const RecordBatch> batch_;
  std::optional<Error> error_;  // after the batch
  std::size_t row_ = 0;
  std::uint64_t next_ = 0;
  std::shared_ptr<Ahead> ahead_;  // announcements by the thread that is reading
};

}  // namespace tfrfast::python
