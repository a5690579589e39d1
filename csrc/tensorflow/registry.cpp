#include "tensorflow/registry.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "core/base/encoding.h"

namespace tfrfast::tensorflow {
namespace {

// Iterations share a kernel if their datasets share a function.
constexpr std::size_t kHeldSources = 4;

struct SharedSource {
  std::mutex mutex;  // held while the source is opened
  std::weak_ptr<const Source> source;
};

class Registry {
 public:
  static Registry& instance() {
    static auto* const registry = new Registry;  // never destroyed: kernels may outlive statics
    return *registry;
  }

  // Returns the entry of an edition of this text, or makes one.
  std::shared_ptr<SharedSource> find(std::string_view text, std::int64_t edition) {
    std::string head(head_of(text));
    if (edition != 0) head.append(" ").append(std::to_string(edition));
    const std::lock_guard lock(mutex_);
    if (const auto at = entries_.find(head); at != entries_.end()) return at->second;
    std::erase_if(entries_, [](const auto& each) {
      // The holder of an entry is about to open the source.
      return each.second.use_count() == 1 && each.second->source.expired();
    });
    return entries_.emplace(std::move(head), std::make_shared<SharedSource>()).first->second;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<SharedSource>> entries_;
};

}  // namespace

std::shared_ptr<const Source> open_source(std::string_view text, std::int64_t edition) {
  const std::shared_ptr<SharedSource> entry = Registry::instance().find(text, edition);
  const std::lock_guard lock(entry->mutex);
  std::shared_ptr<const Source> source = entry->source.lock();
  if (source == nullptr) {
    source = std::make_shared<const Source>(SourceSpec::decode(text));
    entry->source = source;
  }
  return source;
}

Begun begin_source(std::string_view text) {
  std::shared_ptr<const Source> before;  // of the last edition
  for (std::int64_t edition = 0;; ++edition) {
    const std::shared_ptr<SharedSource> entry = Registry::instance().find(text, edition);
    const std::lock_guard lock(entry->mutex);
    std::shared_ptr<const Source> source = entry->source.lock();
    if (source == nullptr) {
      source = std::make_shared<const Source>(SourceSpec::decode(text));
      if (before != nullptr) source->refuse_other_records(*before);
      entry->source = source;
      return {source, edition};
    }
    if (!source->spec().planned) source->begin();
    if (!source->spec().planned || source->still_fits()) return {source, edition};
    before = std::move(source);
  }
}

std::shared_ptr<const Source> adopt_source(SourceSpec spec,
                                           const std::shared_ptr<const RecordSource>& records) {
  for (spec.edition = 0;; ++spec.edition) {
    const std::shared_ptr<SharedSource> entry = Registry::instance().find(spec.encode(), 0);
    const std::lock_guard lock(entry->mutex);
    const std::shared_ptr<const Source> before = entry->source.lock();
    if (before != nullptr && before->still_fits()) return before;
    if (before != nullptr) continue;
    const auto source = std::make_shared<const Source>(std::move(spec), records);
    entry->source = source;
    return source;
  }
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
