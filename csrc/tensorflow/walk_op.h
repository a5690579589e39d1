// The op that walks through records in file order.
#pragma once

#include "tensorflow/kernel_call.h"
#include "tensorflow/requests.h"

namespace tfrfast::tensorflow {

// TfrfastWalk: one step of a walk.
//   source, wanted, state, files -> next, batches, errors
// A `state` without numbers begins a walk. `files` tells what follows the files told before: a
// number and 0 for one file, a first file and a stride for this process's share of all files, or
// kEpochEnd or kEnd and 0. Gives groups of batches, and for each batch an error or ""; at the end,
// groups of no batches.
void compute_walk(Requests& sources, KernelCall& call);

}  // namespace tfrfast::tensorflow
