// The ops that open sources, and read batches.
#pragma once

#include "tensorflow/kernel_call.h"
#include "tensorflow/requests.h"

namespace tfrfast::tensorflow {

// TfrfastSource: makes a source without a plan from names and flags.
//   filenames, skip_damage, compression, storage -> source
void compute_source(KernelCall& call);

// TfrfastStepCount: counts the batches of a plan for these files. An iteration begins here, and
// notices replaced files.
//   source, sequence, files -> count
void compute_step_count(Requests& requests, KernelCall& call);

// What the reading kernels keep from call to call.
struct ReadingKernel {
  Requests requests;
  LastDecoded<Decoders> decoders;
};

// TfrfastRead: reads a group of batches; see Requests::find().
//   source, order, place, errors, features
//   -> columns..., count, is_sound, good, before, error, records, valid
// Without features (""), a batch is one column of strings. There are columns for as many batches as
// the graph has room for; `count` tells how many there are, and `is_sound` whether all of these
// have rows and no error. For each batch, `good` counts its rows, `before` the rows before the
// first error, and `error` has all errors, or "". Only a batch that must be full fails. `records`
// and `valid` describe the rows of a plan.
void compute_read(ReadingKernel& kernel, KernelCall& call);

// TfrfastParseExample: strings into columns.
//   records, features -> columns...
void compute_parse_example(ReadingKernel& kernel, KernelCall& call);

}  // namespace tfrfast::tensorflow
