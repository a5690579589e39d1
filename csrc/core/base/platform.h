// Whether calls that only Linux has may be made. Each has a fallback in POSIX, and a build with
// TFRFAST_PORTABLE uses only the fallbacks.
#pragma once

#if defined(__linux__) && !defined(TFRFAST_PORTABLE)
#define TFRFAST_LINUX 1
#endif
