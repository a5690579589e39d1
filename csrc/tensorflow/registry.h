// The open sources of this process. All readers of the same data share one source.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "tensorflow/source.h"

namespace tfrfast::tensorflow {

// Opens a source, or returns the open source. A source stays open as long as it is held. Now and
// then, and always with `look`, checks whether the files have changed. Throws Error, stale_index if
// the data changed. Safe from many threads.
std::shared_ptr<const Source> open_source(std::string_view text, bool look = false);

// Like open_source(), for a `source` opened elsewhere. Uses an open source with the same text
// instead, if there is one.
std::shared_ptr<const Source> adopt_source(const std::string& text,
                                           std::shared_ptr<const Source> source);

struct RegistryEntry;

// Keeps a source open from its first use on, although kernels come and go. So an epoch need not
// open files, map files and find records again.
class SourceKeeper {
 public:
  explicit SourceKeeper(std::string_view text);
  ~SourceKeeper();
  SourceKeeper(const SourceKeeper&) = delete;
  SourceKeeper& operator=(const SourceKeeper&) = delete;

 private:
  std::shared_ptr<RegistryEntry> entry_;
};

// A kernel's hold on its source, so that the next call finds the source open.
class SourceHolder {
 public:
  std::shared_ptr<const Source> open(std::string_view text, bool look = false);

 private:
  std::mutex mutex_;
  std::shared_ptr<const Source> last_;
};

// The number of open sources, for tests.
std::size_t open_source_count();

}  // namespace tfrfast::tensorflow
