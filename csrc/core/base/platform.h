// Decides whether Linux-only calls may be made. Each has a POSIX fallback. A build with
// TFRFAST_PORTABLE uses only the fallbacks.
#pragma once

#if defined(__linux__) && !defined(TFRFAST_PORTABLE)
#define TFRFAST_LINUX 1
#endif
