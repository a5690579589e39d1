// The open sources of this process. All readers of the same data share one source.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorflow/source.h"

namespace tfrfast::tensorflow {

// Opens a source, or returns the open source. A source stays open as long as it is held. With
// `look`, checks whether files have changed; a changed source without a plan is opened again,
// beside iterations that go on with the earlier files. Checks a planned source also now and then.
// Throws Error, stale_index if planned data changed. Safe from many threads.
std::shared_ptr<const Source> open_source(std::string_view text, bool look = false);
// Like open_source(), but prefers the source whose shards are these files.
std::shared_ptr<const Source> open_source(std::string_view text, std::span<const OpenedFile> files);

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

// A kernel's hold on the sources of its iterations, so that the next call finds them open.
class SourceHolder {
 public:
  std::shared_ptr<const Source> hold(std::shared_ptr<const Source> source);

 private:
  struct Held {
    std::shared_ptr<const Source> source;
    std::shared_ptr<const void> use;
  };
  std::mutex mutex_;
  std::vector<Held> held_;  // last used first
};

// The number of open sources, for tests.
std::size_t open_source_count();

}  // namespace tfrfast::tensorflow
