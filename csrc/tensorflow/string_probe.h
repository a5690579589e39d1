// Tests whether the runtime counts the references of string views: an op hands out a view, Python
// makes TensorFlow copy and drop the view, and the counts tell.
#pragma once

#include <cstdint>

#include "tensorflow/kernel_call.h"

namespace tfrfast::tensorflow {

struct ProbeCounts {
  std::int64_t copies = 0;  // references that the runtime added
  std::int64_t live = 0;    // references not dropped yet
};

void compute_probe_strings(KernelCall& call);
ProbeCounts probe_counts() noexcept;

}  // namespace tfrfast::tensorflow
