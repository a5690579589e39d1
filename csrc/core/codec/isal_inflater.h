// Intel's ISA-L, where it is installed. It inflates about twice as fast as zlib, but cannot tell
// where blocks end.
#pragma once

#include <memory>

#include "core/codec/inflater.h"

namespace tfrfast {

// Null if there is no libisal.so.2 that passes a trial, or if $TFRFAST_INFLATE is "zlib".
std::unique_ptr<Inflater> make_isal_inflater();

}  // namespace tfrfast
