// Turns decoded columns into tensors.
#pragma once

#include <vector>

#include "core/example/columns.h"
#include "core/example/schema.h"
#include "tensorflow/kernel_call.h"

namespace tfrfast::tensorflow {

// Writes the columns to outputs `first`, `first + 1`, ... Returns the number after the last output.
// A column becomes these tensors, in this order, as far as it has them: indices, values, row
// splits, step splits, dense shape. Throws Error(invalid) if an output has another type in the
// graph.
int write_columns(KernelCall& call, int first, const FeatureSchema& schema,
                  std::vector<Column> columns);

}  // namespace tfrfast::tensorflow
