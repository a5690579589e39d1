// The ops that find and read records.
#pragma once

#include "tensorflow/file_order.h"
#include "tensorflow/share.h"

namespace tfrfast::tensorflow {

// TfrfastSource: makes a source without a plan from names and flags.
//   filenames, skip_damage, compression, storage -> source
void compute_source(KernelCall& call);

// TfrfastStepCount: counts the batches of a plan for these files. An iteration begins here, and
// notices replaced files.
//   source, sequence, files -> count
void compute_step_count(ShareHolder& shares, KernelCall& call);

// The remaining ops return errors in the data as results, so that earlier records arrive first.
// Only batches that must be full fail.
//
// TfrfastReadBatch: reads one of some steps of a planned sequence.
//   source, sequence, steps, number, is_full -> head, error, tail
void compute_read_batch(ShareHolder& shares, KernelCall& call);
// TfrfastReadRows: reads a batch that TfrfastWalk found.
//   source, wanted, is_full, batches, errors, number -> head, error, tail
void compute_read_rows(WalkHolder& holder, KernelCall& call);

// Fails with `error` ("" for none) if the batch must be full, which it is not without its bad
// records.
void fail_if(bool is_full, std::string_view error);  // throws KernelFailure

}  // namespace tfrfast::tensorflow
