// The sources that this process has open. Everyone who reads the same data shares one.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "tensorflow/source.h"

namespace tfrfast::tensorflow {

// Opens a source, or finds the one that is open; it stays open as long as anyone holds it. Now and
// then, and if told to `look`, it sees whether the files are still what they were. Throws Error,
// stale_index for data that changed. Safe from many threads.
std::shared_ptr<const Source> open_source(std::string_view text, bool look = false);

// The same for a source that was opened otherwise: unless the like of it is open, it takes its
// place.
std::shared_ptr<const Source> adopt_source(const std::string& text,
                                           std::shared_ptr<const Source> source);

// A kernel's hold on the source that it reads, so that the next call finds it open.
class SourceHolder {
 public:
  std::shared_ptr<const Source> open(std::string_view text, bool look = false);

 private:
  std::mutex mutex_;
  std::shared_ptr<const Source> last_;
};

// How many sources are open; for tests.
std::size_t open_source_count();

}  // namespace tfrfast::tensorflow
