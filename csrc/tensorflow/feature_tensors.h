// Features as a graph describes them: what is decoded, and which tensors come of it.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/example/columns.h"
#include "core/example/schema.h"
#include "tensorflow/kernel_call.h"

namespace tfrfast::tensorflow {

// Immutable. Each feature becomes, one tensor after the other:
//   fixed, padded: values
//   ragged:        values, row splits
//   sparse:        indices, values, dense shape
struct FeatureTensors {
  std::shared_ptr<const FeaturePlan> plan;
  std::vector<DataType> types;  // of each feature's values

  // Writes the plan's columns into outputs `first`, ...; returns the one behind the last.
  int write(KernelCall& call, int first, std::vector<Column> columns) const;
};

// Throws Error(invalid) for what tfrfast/_tensorflow/columns.py did not write.
FeatureTensors decode_features(std::string_view text);

}  // namespace tfrfast::tensorflow
