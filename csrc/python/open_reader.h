// A reader as Python sees it: the core's, until it is closed.
#pragma once

#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/read/reader.h"
#include "python/without_gil.h"

namespace tfrfast::python {

// The core's reader lives as long as anyone uses it, even after close().
class OpenReader {
 public:
  explicit OpenReader(std::shared_ptr<const Reader> reader) : reader_(std::move(reader)) {}

  const std::shared_ptr<const Reader>& get() const {
    if (reader_ == nullptr) throw Error(ErrorKind::closed, "This reader has been closed.");
    return reader_;
  }
  bool closed() const { return reader_ == nullptr; }
  void close() {
    std::shared_ptr<const Reader> closing = std::exchange(reader_, nullptr);
    const WithoutGil without_gil;  // unmapping thousands of shards takes a while
    closing = nullptr;
  }

 private:
  std::shared_ptr<const Reader> reader_;
};

}  // namespace tfrfast::python
