// The ops that find and read records.
#pragma once

#include "tensorflow/share.h"

namespace tfrfast::tensorflow {

// TfrfastSource: names and flags into a source without a plan.
//   filenames, skip_damage, zero_copy, compression, access -> source
void compute_source(KernelCall& call);

// An iteration begins with one of these two, which notice files that were replaced.
//
// TfrfastBlocksOfFile: where a file's blocks begin and end, as far as the sequence needs them.
//   source, sequence, file -> begin, end
void compute_blocks_of_file(ShareHolder& shares, KernelCall& call);
// TfrfastStepCount: how many batches of a plan, or blocks without one, these files have.
//   source, sequence, files -> count
void compute_step_count(ShareHolder& shares, KernelCall& call);

// The others return errors in the data as results, so that the records before them arrive first.
// Only batches that have to be full fail.
//
// TfrfastReadBlocks: the records of some blocks.
//   source, sequence, steps -> head, error, tail
void compute_read_blocks(ShareHolder& shares, KernelCall& call);
// TfrfastReadBatch: one of some steps of a planned sequence.
//   source, sequence, steps, number, is_full -> head, error, tail
void compute_read_batch(ShareHolder& shares, KernelCall& call);
// TfrfastFindRecords: the addresses of the records of some blocks.
//   source, sequence, steps -> head, error, tail
void compute_find_records(ShareHolder& shares, KernelCall& call);
// TfrfastReadRecords: the records at these addresses.
//   source, is_full, addresses -> head, error, tail
void compute_read_records(ShareHolder& shares, KernelCall& call);

// Fails with `error` ("" for none) if the batch has to be full: without its bad records it is not.
void fail_if(bool is_full, std::string_view error);  // throws KernelFailure

}  // namespace tfrfast::tensorflow
