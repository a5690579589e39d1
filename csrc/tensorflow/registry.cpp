#include "tensorflow/registry.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "core/base/hashing.h"

namespace tfrfast::tensorflow {
namespace {

using Clock = std::chrono::steady_clock;

// A look at every file takes time, so a look happens at most once a second and takes at most a
// hundredth of all time.
constexpr Clock::duration kBetweenLooks = std::chrono::seconds(1);
constexpr int kShareOfLooks = 100;
// Iterations share a kernel if their datasets share a function.
constexpr std::size_t kHeldSources = 4;

}  // namespace

struct RegistryEntry {
  explicit RegistryEntry(std::string_view what) : text(what) {}

  const std::string text;
  std::mutex mutex;  // guards source, first, earlier, next_look; held while the source is opened
  std::weak_ptr<const Source> source;
  std::weak_ptr<const Source> first;                 // the source from which plans were made
  std::vector<std::weak_ptr<const Source>> earlier;  // whose files have changed since
  Clock::time_point next_look;

  // Guards the members below. Locked after `mutex`, and never held for long: opening a URL may wait
  // for a Python thread that is collecting a keeper.
  std::mutex keeping;
  std::size_t keepers = 0;
  std::shared_ptr<const Source> kept;  // the source, if there are keepers

  void keep(std::shared_ptr<const Source> opened) {
    std::lock_guard lock(keeping);
    if (keepers > 0) kept.swap(opened);
  }
};

namespace {

using Entry = RegistryEntry;

class Registry {
 public:
  static Registry& instance() {
    static auto* const registry = new Registry;  // never destroyed: kernels may outlive statics
    return *registry;
  }

  // Opens the source, unless the source is open already or `at_hand` is given.
  std::shared_ptr<const Source> open(std::string_view text,
                                     std::shared_ptr<const Source> at_hand = nullptr,
                                     bool look = false) {
    const std::shared_ptr<Entry> entry = find(text);
    std::lock_guard lock(entry->mutex);
    std::shared_ptr<const Source> source = entry->source.lock();
    const Clock::time_point begin = Clock::now();
    if (source != nullptr && !look) {
      const bool may_look = source->spec().planned && !source->is_remote();
      if (!may_look || begin < entry->next_look) return source;
    }
    // Changed files are opened again and judged by their present contents, so touching a file
    // changes nothing. But under a plan no record may move.
    if (source == nullptr || !source->still_fits()) {
      const std::shared_ptr<const Source> first = entry->first.lock();
      if (at_hand != nullptr) {
        source = std::move(at_hand);
        entry->first = source;
      } else {
        source = std::make_shared<const Source>(SourceSpec::decode(text));
        if (first == nullptr) entry->first = source;
        if (first != nullptr) source->refuse_other_records(*first);
      }
      std::erase_if(entry->earlier, [](const auto& each) { return each.expired(); });
      entry->earlier.push_back(entry->source);
      entry->source = source;
      entry->keep(source);
    }
    if (look) source->begin_again();
    const Clock::time_point end = Clock::now();
    entry->next_look = end + std::max(kBetweenLooks, kShareOfLooks * (end - begin));
    return source;
  }

  std::shared_ptr<const Source> open(std::string_view text, std::span<const OpenedFile> files) {
    std::shared_ptr<const Source> source = open(text);
    const auto has_all = [files](const Source& each) {
      return std::all_of(files.begin(), files.end(), [&each](const OpenedFile& file) {
        return file.version == 0 || each.has(file.shard, file.version);
      });
    };
    if (has_all(*source)) return source;
    const std::shared_ptr<Entry> entry = find(text);
    const std::lock_guard lock(entry->mutex);
    for (const std::weak_ptr<const Source>& each : entry->earlier) {
      if (auto other = each.lock(); other != nullptr && has_all(*other)) return other;
    }
    return source;
  }

  std::size_t open_count() {
    std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(
        std::count_if(entries_.begin(), entries_.end(), [](const Entries::value_type& each) {
          std::lock_guard entry_lock(each.second->mutex);
          return !each.second->source.expired();
        }));
  }

  // Returns the entry with this text, or makes one.
  std::shared_ptr<Entry> find(std::string_view text) {
    const std::uint64_t hash = fnv1a(head_of(text));
    std::lock_guard lock(mutex_);
    const auto [first, last] = entries_.equal_range(hash);
    for (auto at = first; at != last; ++at) {
      if (at->second->text == text) return at->second;
    }
    std::erase_if(entries_, [](const Entries::value_type& each) {
      // The holder of an entry keeps the source open, or is about to open the source.
      const auto is_closed = [](const auto& source) { return source.expired(); };
      return each.second.use_count() == 1 && is_closed(each.second->source) &&
             std::all_of(each.second->earlier.begin(), each.second->earlier.end(), is_closed);
    });
    return entries_.emplace(hash, std::make_shared<Entry>(text))->second;
  }

 private:
  using Entries = std::unordered_multimap<std::uint64_t, std::shared_ptr<Entry>>;

  std::mutex mutex_;
  Entries entries_;
};

}  // namespace

std::shared_ptr<const Source> open_source(std::string_view text, bool look) {
  return Registry::instance().open(text, nullptr, look);
}

std::shared_ptr<const Source> open_source(std::string_view text,
                                          std::span<const OpenedFile> files) {
  return Registry::instance().open(text, files);
}

std::shared_ptr<const Source> adopt_source(const std::string& text,
                                           std::shared_ptr<const Source> source) {
  return Registry::instance().open(text, std::move(source));
}

std::size_t open_source_count() {
  return Registry::instance().open_count();
}

SourceKeeper::SourceKeeper(std::string_view text) : entry_(Registry::instance().find(text)) {
  std::lock_guard lock(entry_->mutex);
  {
    std::lock_guard keeping(entry_->keeping);
    ++entry_->keepers;
  }
  entry_->keep(entry_->source.lock());
}

SourceKeeper::~SourceKeeper() {
  std::shared_ptr<const Source> last;  // closed without the lock
  std::lock_guard lock(entry_->keeping);
  if (--entry_->keepers == 0) last.swap(entry_->kept);
}

std::shared_ptr<const Source> SourceHolder::hold(std::shared_ptr<const Source> source) {
  Held held{source, Source::use(source)};
  std::vector<Held> dropped;  // closed without the lock
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(held_.begin(), held_.end(),
                               [&](const Held& each) { return each.source == source; });
  if (at != held_.end()) {
    std::rotate(held_.begin(), at, at + 1);
  } else {
    held_.insert(held_.begin(), std::move(held));
    if (held_.size() > kHeldSources) dropped.push_back(std::move(held_.back()));
    held_.resize(std::min(held_.size(), kHeldSources));
  }
  return source;
}

}  // namespace tfrfast::tensorflow
