// The sources that this process has open. Everyone who reads the same data shares one.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "tensorflow/source.h"

namespace tfrfast::tensorflow {

// Opens a source, or returns the one that is open. It stays open as long as anyone holds it. Now
// and then, and always with `look`, this checks whether the files are still what they were. Throws
// Error, stale_index if the data changed. Safe from many threads.
std::shared_ptr<const Source> open_source(std::string_view text, bool look = false);

// The same for a `source` that was opened elsewhere. It is used unless one with the same text is
// open.
std::shared_ptr<const Source> adopt_source(const std::string& text,
                                           std::shared_ptr<const Source> source);

struct RegistryEntry;

// Keeps a source open from its first use on, though kernels come and go: so an epoch need not open
// again, map again, and find records again where the last one did.
class SourceKeeper {
 public:
  explicit SourceKeeper(std::string_view text);
  ~SourceKeeper();
  SourceKeeper(const SourceKeeper&) = delete;
  SourceKeeper& operator=(const SourceKeeper&) = delete;

 private:
  std::shared_ptr<RegistryEntry> entry_;
};

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
