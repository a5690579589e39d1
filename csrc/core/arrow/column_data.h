// Converts a decoded column to Arrow's form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/arrow/data.h"
#include "core/arrow/field.h"
#include "core/example/columns.h"

namespace tfrfast {

// Takes the column's memory. Copies nothing except booleans, which Arrow packs. `field` describes
// the nesting of a row: a list for each level of row splits. A row that the column's presence marks
// as absent becomes null.
//
// In a list of fixed lists, a row's number of values must be a multiple of an item's number of
// values. Otherwise throws Error(feature). `record_numbers` are the rows' record numbers, for
// errors.
ArrowData column_data(Column column, const ArrowField& field,
                      std::span<const std::int64_t> record_numbers);

}  // namespace tfrfast
