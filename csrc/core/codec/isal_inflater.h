// Intel's ISA-L, where the machine has it: it inflates about twice as fast as zlib, but cannot tell
// where blocks end.
#pragma once

#include <memory>

#include "core/codec/inflater.h"

namespace tfrfast {

// Null without a libisal.so.2 that passes its trial, or if $TFRFAST_INFLATE is "zlib".
std::unique_ptr<Inflater> make_isal_inflater();

}  // namespace tfrfast
