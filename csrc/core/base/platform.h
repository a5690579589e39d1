// Whether calls may be made that only Linux has. Each has a fallback that POSIX has, and building
// with TFRFAST_PORTABLE leaves nothing but those.
#pragma once

#if defined(__linux__) && !defined(TFRFAST_PORTABLE)
#define TFRFAST_LINUX 1
#endif
