// The open sources of this process. All readers of the same data share one source.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "tensorflow/source.h"

namespace tfrfast::tensorflow {

// Opens a source, or returns the open source. A source stays open as long as it is held. Several
// editions of a planned source are open while iterations read files that have been replaced since.
// Throws Error. Safe from many threads.
std::shared_ptr<const Source> open_source(std::string_view text, std::int64_t edition = 0);

struct Begun {
  std::shared_ptr<const Source> source;
  std::int64_t edition = 0;
};
// The same for an iteration that begins: looks whether files have changed. A planned source of
// changed files is opened as another edition, and judged by their present contents, so touching a
// file changes nothing. But under a plan no record may move: throws Error stale_index.
Begun begin_source(std::string_view text);
// Like open_source(), for a planned source whose records are open already. If files of the open
// source have changed, its readers keep it, and the result is another edition.
std::shared_ptr<const Source> adopt_source(SourceSpec spec,
                                           const std::shared_ptr<const RecordSource>& records);

// A kernel's hold on the sources of its iterations, so that the next call finds them open. The
// announcements of the iterations end with the kernel.
class SourceHolder {
 public:
  SourceHolder() = default;
  ~SourceHolder();
  SourceHolder(const SourceHolder&) = delete;
  SourceHolder& operator=(const SourceHolder&) = delete;

  std::shared_ptr<const Source> hold(std::shared_ptr<const Source> source);

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const Source>> held_;  // last used first
};

}  // namespace tfrfast::tensorflow
