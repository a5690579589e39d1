// Throws the errors of decoding, which name the fault, the feature and the record.
#pragma once

#include <cstdint>
#include <string>

#include "core/example/columns.h"
#include "core/example/record_kind.h"
#include "core/example/schema.h"
#include "core/read/record_origin.h"

namespace tfrfast {

struct RecordPlace {
  std::int64_t record;
  const FindOrigin* find_origin;  // empty if the records come from no source
};

[[noreturn]] void complain_no_example(const RecordPlace& place, RecordKind found);
// `why` as in "does not fit".
[[noreturn]] void complain_no_message(const RecordPlace& place, const std::string& message,
                                      std::size_t record_offset, const char* why);
[[noreturn]] void complain_malformed(const RecordPlace& place, std::size_t record_offset);
[[noreturn]] void complain_too_long(const RecordPlace& place, std::size_t record_bytes);
[[noreturn]] void complain_missing(const RecordPlace& place, const FeatureSpec& spec);
[[noreturn]] void complain_no_list(const RecordPlace& place, const FeatureSpec& spec);
[[noreturn]] void complain_kind(const RecordPlace& place, const FeatureSpec& spec, ListKind found);
[[noreturn]] void complain_mixed(const RecordPlace& place, const FeatureSpec& spec, ListKind before,
                                 ListKind found);
// A fault of the row that was put last.
[[noreturn]] void complain_misfit(const RecordPlace& place, const CompiledFeature& feature, Fit fit,
                                  const ColumnBuilder& column);
// `found` as ColumnBuilder::found().
[[noreturn]] void complain_count(const RecordPlace& place, const CompiledFeature& feature, Fit fit,
                                 std::int64_t found);
[[noreturn]] void complain_length(const RecordPlace& place, const FeatureSpec& spec,
                                  std::size_t found, std::size_t counted);
[[noreturn]] void complain_image(const RecordPlace& place, const FeatureSpec& spec,
                                 const std::string& problem);

}  // namespace tfrfast
