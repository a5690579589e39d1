// The ops that open sources, walk through them, and read batches.
#pragma once

#include "tensorflow/kernel_call.h"
#include "tensorflow/requests.h"

namespace tfrfast::tensorflow {

// TfrfastSource: makes a source without a plan from names and flags.
//   filenames, skip_damage, compression, storage -> source
void compute_source(KernelCall& call);

// TfrfastWalk: one step of a walk through records in file order.
//   source, wanted, state, files -> next, batches, errors
// A `state` without numbers begins a walk. `files` tells what follows the files told before: a
// number and 0 for one file, a first file and a stride for this process's share of all files, or
// kEpochEnd or kEnd and 0. Gives groups of batches, and for each batch an error or ""; at the end,
// groups of no batches.
void compute_walk(Requests& sources, KernelCall& call);

// TfrfastStepCount: counts the batches of a plan for these files. An iteration begins here, and
// notices replaced files.
//   source, sequence, files -> the count, and the edition of the source
void compute_step_count(Requests& requests, KernelCall& call);

// What the reading kernels keep from call to call.
struct ReadingKernel {
  Requests requests;
  LastDecoded<Decoders> decoders;
};

// TfrfastRead: reads a group of batches; see Requests::find().
//   source, order, place, errors, features -> columns..., is_sound, facts, error
// Without features (""), a batch is one column of strings. There are columns for as many batches as
// the graph has room for. `is_sound` says whether all batches have rows and no error. `facts` are
// the number of batches, the good rows of each, and the rows of each before its first error.
// `error` has the errors of each batch, or "". Only a batch that must be full fails.
void compute_read(ReadingKernel& kernel, KernelCall& call);

// TfrfastLoad: reads a step of a Loader's plan; `run` is what precedes the step in a place.
//   source, plan, run, step, features -> columns..., records, valid, error
void compute_load(ReadingKernel& kernel, KernelCall& call);

// TfrfastParseExample: strings into columns.
//   records, features -> columns...
void compute_parse_example(ReadingKernel& kernel, KernelCall& call);

}  // namespace tfrfast::tensorflow
