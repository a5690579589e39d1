#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#if defined(__SANITIZE_THREAD__)
// Forked children that start threads are part of what is tested; and the fault guard jumps out of
// its signal handler, which makes the sanitizer believe that all that follows is still in it.
extern "C" [[gnu::visibility("default")]] const char* __tsan_default_options() {
  return "die_after_fork=0:report_signal_unsafe=0";
}
#endif
