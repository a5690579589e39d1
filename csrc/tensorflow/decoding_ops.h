// The ops that give columns.
#pragma once

#include "tensorflow/decoding.h"

namespace tfrfast::tensorflow {

// TfrfastParseExample: strings into columns.
//   records, features -> columns...
void compute_parse_example(DecodingKernel& kernel, KernelCall& call);

// TfrfastDecodeBatch: one of some steps of a sequence into columns. Where there is an error they
// are of the step's good records; batches that have to be full fail.
//   source, sequence, steps, number, is_full, features -> columns..., rows, error
void compute_decode_batch(DecodingKernel& kernel, KernelCall& call);

// TfrfastDecodeRecords: the records at these addresses into columns, in the same way.
//   source, is_full, addresses, features -> columns..., rows, error
void compute_decode_records(DecodingKernel& kernel, KernelCall& call);

// TfrfastLoadBatch: a step of a loader's plan. Without features, "", records are the only column.
// Where there is an error, there are no rows. `run` is the first epoch, and how many steps there
// are.
//   source, plan, run, key, step, features -> columns..., indices, valid, error
void compute_load_batch(DecodingKernel& kernel, KernelCall& call);

}  // namespace tfrfast::tensorflow
