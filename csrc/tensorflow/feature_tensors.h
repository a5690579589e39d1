// Decoded columns as tensors.
#pragma once

#include <vector>

#include "core/example/columns.h"
#include "core/example/schema.h"
#include "tensorflow/kernel_call.h"

namespace tfrfast::tensorflow {

// Writes the columns into outputs `first`, ...; returns the number after the last. Each becomes,
// one tensor after the other, what it has of: indices, values, row splits and dense shape. Throws
// Error(invalid) if the graph says that an output is of another kind.
int write_columns(KernelCall& call, int first, const FeaturePlan& plan,
                  std::vector<Column> columns);

}  // namespace tfrfast::tensorflow
