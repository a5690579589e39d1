#include "tensorflow/registry.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "core/base/encoding.h"

namespace tfrfast::tensorflow {
namespace {

// Iterations share a kernel if their datasets share a function.
constexpr std::size_t kHeldSources = 4;

struct Entry {
  std::mutex mutex;  // held while the source is opened
  std::weak_ptr<const Source> source;
};

class Registry {
 public:
  static Registry& instance() {
    static auto* const registry = new Registry;  // never destroyed: kernels may outlive statics
    return *registry;
  }

  // Returns the entry of this text, or makes one.
  std::shared_ptr<Entry> find(std::string_view text) {
    std::string head(head_of(text));
    const std::lock_guard lock(mutex_);
    if (const auto at = entries_.find(head); at != entries_.end()) return at->second;
    std::erase_if(entries_, [](const auto& each) {
      // The holder of an entry is about to open the source.
      return each.second.use_count() == 1 && each.second->source.expired();
    });
    return entries_.emplace(std::move(head), std::make_shared<Entry>()).first->second;
  }

  std::size_t open_count() {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(
        std::count_if(entries_.begin(), entries_.end(), [](const auto& each) {
          const std::lock_guard entry_lock(each.second->mutex);
          return !each.second->source.expired();
        }));
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;
};

std::shared_ptr<const Source> open(std::string_view text, bool begins) {
  const std::shared_ptr<Entry> entry = Registry::instance().find(text);
  const std::lock_guard lock(entry->mutex);
  const std::shared_ptr<const Source> before = entry->source.lock();
  if (before != nullptr) {
    if (begins && !before->spec().planned) before->begin();
    if (!begins || !before->spec().planned || before->still_fits()) return before;
  }
  const auto source = std::make_shared<const Source>(SourceSpec::decode(text));
  if (before != nullptr) source->refuse_other_records(*before);
  entry->source = source;
  return source;
}

}  // namespace

std::shared_ptr<const Source> open_source(std::string_view text) {
  return open(text, false);
}

std::shared_ptr<const Source> begin_source(std::string_view text) {
  return open(text, true);
}

std::shared_ptr<const Source> adopt_source(SourceSpec spec,
                                           const std::shared_ptr<const RecordSource>& records) {
  for (spec.edition = 0;; ++spec.edition) {
    const std::shared_ptr<Entry> entry = Registry::instance().find(spec.encode());
    const std::lock_guard lock(entry->mutex);
    const std::shared_ptr<const Source> before = entry->source.lock();
    if (before != nullptr && before->still_fits()) return before;
    if (before != nullptr) continue;
    const auto source = std::make_shared<const Source>(std::move(spec), records);
    entry->source = source;
    return source;
  }
}

std::size_t open_source_count() {
  return Registry::instance().open_count();
}

SourceHolder::~SourceHolder() {
  for (const std::shared_ptr<const Source>& source : held_) source->withdraw();
}

std::shared_ptr<const Source> SourceHolder::hold(std::shared_ptr<const Source> source) {
  std::shared_ptr<const Source> dropped;  // closed without the lock
  const std::lock_guard lock(mutex_);
  const auto at = std::find(held_.begin(), held_.end(), source);
  if (at != held_.end()) {
    std::rotate(held_.begin(), at, at + 1);
    return source;
  }
  held_.insert(held_.begin(), source);
  if (held_.size() > kHeldSources) {
    dropped = std::move(held_.back());
    held_.pop_back();
  }
  return source;
}

}  // namespace tfrfast::tensorflow
