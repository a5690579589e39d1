// Declares the codecs for the table.
#pragma once

#include "core/codec/codec.h"

namespace tfrfast {

extern const Codec kGzipCodec;  // gzip.cpp
extern const Codec kZlibCodec;  // zlib_wrapper.cpp

}  // namespace tfrfast
