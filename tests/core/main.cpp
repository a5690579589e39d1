#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#if defined(__SANITIZE_THREAD__)
// The tests fork children that start threads. The fault guard jumps out of its signal handler, so
// the sanitizer mistakes all later code for a part of the handler.
extern "C" [[gnu::visibility("default")]] const char* __tsan_default_options() {
  return "die_after_fork=0:report_signal_unsafe=0";
}
#endif
