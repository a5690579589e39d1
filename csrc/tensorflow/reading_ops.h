// The ops that find and read records.
#pragma once

#include "tensorflow/share.h"

namespace tfrfast::tensorflow {

// TfrfastSource: makes a source without a plan from names and flags.
//   filenames, skip_damage, zero_copy, compression, storage -> source
void compute_source(KernelCall& call);

// An iteration begins with one of the next two ops, which notice replaced files.
//
// TfrfastBlocksOfFile: the begin and end of a file's blocks, as far as the sequence needs them.
//   source, sequence, file -> begin, end
void compute_blocks_of_file(ShareHolder& shares, KernelCall& call);
// TfrfastStepCount: counts the batches of a plan, or the blocks without a plan, of these files.
//   source, sequence, files -> count
void compute_step_count(ShareHolder& shares, KernelCall& call);

// The remaining ops return errors in the data as results, so that earlier records arrive first.
// Only batches that must be full fail.
//
// TfrfastReadBlocks: reads the records of some blocks.
//   source, sequence, steps -> head, error, tail
void compute_read_blocks(ShareHolder& shares, KernelCall& call);
// TfrfastReadBatch: reads one of some steps of a planned sequence.
//   source, sequence, steps, number, is_full -> head, error, tail
void compute_read_batch(ShareHolder& shares, KernelCall& call);
// TfrfastFindRecords: finds the addresses of the records of some blocks.
//   source, sequence, steps -> head, error, tail
void compute_find_records(ShareHolder& shares, KernelCall& call);
// TfrfastReadRecords: reads the records at these addresses.
//   source, is_full, addresses -> head, error, tail
void compute_read_records(ShareHolder& shares, KernelCall& call);

// Fails with `error` ("" for none) if the batch must be full, which it is not without its bad
// records.
void fail_if(bool is_full, std::string_view error);  // throws KernelFailure

}  // namespace tfrfast::tensorflow
