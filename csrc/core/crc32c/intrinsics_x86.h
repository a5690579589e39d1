// Includes the vector intrinsics without GCC's false warnings.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of the deliberately undefined values inside its own intrinsics.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif
