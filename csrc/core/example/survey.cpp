#include "core/example/survey.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/example/complaint.h"
#include "core/example/entries.h"
#include "core/example/varints.h"

namespace tfrfast {
namespace {

std::size_t count_values(const FeatureList& list, ListKind kind) noexcept {
  if (list.form == ListForm::packed) {
    return kind == ListKind::ints ? count_varints(list.values) : list.values.size() / 4;
  }
  std::size_t count = 0;
  WireReader reader(list.values);
  while (!reader.at_end() && reader.skip_field()) ++count;
  return count;
}

}  // namespace

void Survey::add(WireBytes record) {
  const FindOrigin nowhere;
  const RecordPlace place{static_cast<std::int64_t>(records_), &nowhere};
  if (record.size() >= kLongestMessage) complain_too_long(place, record.size());
  std::map<std::string, WireBytes> last;  // the last value of a repeated key counts
  const std::uint8_t* const stopped = for_each_entry(record, [&](WireBytes key, WireBytes feature) {
    last[{reinterpret_cast<const char*>(key.data()), key.size()}] = feature;
  });
  if (stopped != nullptr) {
    complain_malformed(place, static_cast<std::size_t>(stopped - record.data()));
  }
  for (const auto& [name, feature] : last) {
    FeatureSpec spec;
    spec.name = name;
    ListKind kind;
    if (!read_list_kind(feature, kind)) complain_no_list(place, spec);
    SeenFeature& seen = features_[name];
    if (kind == ListKind::none) continue;
    if (seen.kind != ListKind::none && seen.kind != kind) {
      complain_mixed(place, spec, seen.kind, kind);
    }
    const std::size_t values = count_values(find_list(feature, kind), kind);
    seen.min_values = seen.records == 0 ? values : std::min(seen.min_values, values);
    seen.max_values = std::max(seen.max_values, values);
    seen.kind = kind;
    ++seen.records;
  }
  ++records_;
}

}  // namespace tfrfast
