// Finds out whether the runtime counts the references of string views: an op hands out one view,
// Python has TensorFlow copy and drop it, and the counts tell.
#pragma once

#include <cstdint>

#include "tensorflow/kernel_call.h"

namespace tfrfast::tensorflow {

struct ProbeCounts {
  std::int64_t copies = 0;  // references that the runtime added
  std::int64_t live = 0;    // references that nobody has dropped
};

void compute_probe_strings(KernelCall& call);
ProbeCounts probe_counts() noexcept;

}  // namespace tfrfast::tensorflow
