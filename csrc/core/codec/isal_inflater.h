// Inflates with Intel's ISA-L, from the machine or from PyPI's package `isal`. About twice as fast
// as zlib, but cannot stop at block ends.
#pragma once

#include <memory>

#include "core/codec/inflater.h"

namespace tfrfast {

// Null if no library passes the trial, or if $TFRFAST_INFLATE is "zlib".
std::unique_ptr<Inflater> make_isal_inflater();

}  // namespace tfrfast
