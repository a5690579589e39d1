#include "core/example/survey.h"

#include <algorithm>
#include <string_view>

#include "core/example/complaint.h"
#include "core/example/entries.h"

namespace tfrfast {
void Survey::add(WireBytes record, std::int64_t number) {
  const RecordPlace place{number, &find_origin_};
  if (record.size() >= kLongestMessage) complain_too_long(place, record.size());
  if (examples_alone_) {
    const RecordKind kind = kind_of(record);
    if (kind != RecordKind::example) complain_no_example(place, kind);
  }
  in_record_.clear();
  const std::uint8_t* const stopped = for_each_entry(record, [&](WireBytes key, WireBytes feature) {
    const std::string_view name{reinterpret_cast<const char*>(key.data()), key.size()};
    auto found = features_.find(name);
    if (found == features_.end()) found = features_.try_emplace(std::string(name)).first;
    in_record_.emplace_back(&*found, feature);
  });
  if (stopped != nullptr) {
    complain_malformed(place, static_cast<std::size_t>(stopped - record.data()));
  }
  std::stable_sort(in_record_.begin(), in_record_.end(),
                   [](const auto& a, const auto& b) { return std::less<>()(a.first, b.first); });
  for (std::size_t i = 0; i < in_record_.size(); ++i) {
    if (i + 1 < in_record_.size() && in_record_[i + 1].first == in_record_[i].first) continue;
    auto& [entry, feature] = in_record_[i];
    ListKind kind;
    if (!read_list_kind(feature, kind)) {
      FeatureSpec spec;
      spec.name = entry->first;
      complain_no_list(place, spec);
    }
    if (kind == ListKind::none) continue;
    complain_if_mixed(*entry, kind, number);
    SeenFeature& seen = entry->second;
    const std::size_t values = count_values(find_list(feature, kind), kind);
    if (seen.records++ == 0) {
      seen = {kind, 1, values, values, number};
    } else {
      seen.min_values = std::min(seen.min_values, values);
      seen.max_values = std::max(seen.max_values, values);
    }
  }
  ++records_;
}

void Survey::add(const Survey& later) {
  records_ += later.records_;
  for (const auto& [name, theirs] : later.features_) {
    const auto [entry, is_new] = features_.try_emplace(name, theirs);
    if (is_new || theirs.records == 0) continue;
    SeenFeature& seen = entry->second;
    if (seen.records == 0) {
      seen = theirs;
      continue;
    }
    complain_if_mixed(*entry, theirs.kind, theirs.first_record);
    seen.records += theirs.records;
    seen.min_values = std::min(seen.min_values, theirs.min_values);
    seen.max_values = std::max(seen.max_values, theirs.max_values);
  }
}

void Survey::complain_if_mixed(const Features::value_type& seen, ListKind kind,
                               std::int64_t number) const {
  if (seen.second.kind == ListKind::none || seen.second.kind == kind) return;
  FeatureSpec spec;
  spec.name = seen.first;
  complain_mixed({number, &find_origin_}, spec, seen.second.kind, kind);
}

}  // namespace tfrfast
