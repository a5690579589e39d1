// Counts the values that a feature has in each record.
#pragma once

#include <cstdint>
#include <string>

#include "core/read/record_source.h"

namespace tfrfast {

// Writes the number of values of the records [begin, end), on several threads. A record without the
// feature has 0, and so has a damaged record that the source leaves out: then it returns false.
// Throws the source's Error, and `feature` for a record that is not an Example.
bool count_lengths(const RecordSource& source, const std::string& feature, std::int64_t begin,
                   std::int64_t end, unsigned threads, std::uint32_t* lengths);

}  // namespace tfrfast
