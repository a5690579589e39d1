// The ops that return columns.
#pragma once

#include "tensorflow/decoding.h"

namespace tfrfast::tensorflow {

// TfrfastParseExample: strings into columns.
//   records, features -> columns...
void compute_parse_example(DecodingKernel& kernel, KernelCall& call);

// TfrfastDecodeBatch: decodes one of some steps of a sequence. With an error, the columns hold the
// step's good records; a batch that must be full fails.
//   source, sequence, steps, number, is_full, features -> columns..., rows, error
void compute_decode_batch(DecodingKernel& kernel, KernelCall& call);

// TfrfastDecodeRows: decodes a batch that TfrfastWalk found, with errors as above.
//   source, wanted, is_full, batches, errors, number, features -> columns..., rows, error
void compute_decode_rows(DecodingKernel& kernel, KernelCall& call);

// TfrfastLoadBatch: loads a step of a loader's plan. Without features (""), the records are the
// only column. With an error, there are no rows. `run` is the first epoch and the number of steps.
//   source, plan, run, key, step, features -> columns..., indices, valid, error
void compute_load_batch(DecodingKernel& kernel, KernelCall& call);

}  // namespace tfrfast::tensorflow
