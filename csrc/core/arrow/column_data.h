// A decoded column as Arrow has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/arrow/data.h"
#include "core/arrow/field.h"
#include "core/example/columns.h"

namespace tfrfast {

// Takes the column's memory, without a copy unless values are booleans, which Arrow packs. `field`
// says how the rows are nested. Rows that the column's presence marks as absent are null.
//
// A list whose items are fixed lists divides each row by the items' size. Throws Error(feature) if
// a row cannot be divided; `record_numbers` are the rows' numbers.
ArrowData column_data(Column column, const ArrowField& field,
                      std::span<const std::int64_t> record_numbers);

}  // namespace tfrfast
