#include "failing_calls.h"

#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace tfrfast::testing {
namespace {

std::atomic<const char*> failing{nullptr};
std::atomic<int> allowed_left{0};
std::atomic<int> made{0};
int failing_error = 0;

bool fails(const char* call) {
  const char* chosen = failing.load();
  if (chosen == nullptr || std::strcmp(chosen, call) != 0) return false;
  ++made;
  if (allowed_left.fetch_sub(1) > 0) return false;
  errno = failing_error;
  return true;
}

}  // namespace

FailingCall::FailingCall(const std::string& call, int allowed, int error) {
  static std::string name;
  name = call;
  allowed_left = allowed;
  made = 0;
  failing_error = error;
  failing = name.c_str();
}

FailingCall::~FailingCall() {
  failing = nullptr;
}

int FailingCall::calls() const {
  return made;
}

}  // namespace tfrfast::testing

using tfrfast::testing::failing_error;
using tfrfast::testing::fails;

extern "C" {

ssize_t __real_pwritev(int, const iovec*, int, off_t);
ssize_t __wrap_pwritev(int descriptor, const iovec* pieces, int count, off_t offset) {
  if (!fails("pwritev")) return __real_pwritev(descriptor, pieces, count, offset);
  if (failing_error != 0) return -1;
  while (pieces->iov_len == 0) ++pieces;
  const iovec byte{pieces->iov_base, 1};
  return __real_pwritev(descriptor, &byte, 1, offset);
}

int __real_fsync(int);
int __wrap_fsync(int descriptor) {
  return fails("fsync") ? -1 : __real_fsync(descriptor);
}

int __real_linkat(int, const char*, int, const char*, int);
int __wrap_linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  return fails("linkat") ? -1 : __real_linkat(from_folder, from, to_folder, to, flags);
}

int __real_rename(const char*, const char*);
int __wrap_rename(const char* from, const char* to) {
  return fails("rename") ? -1 : __real_rename(from, to);
}

int __real_fallocate(int, int, off_t, off_t);
int __wrap_fallocate(int descriptor, int mode, off_t offset, off_t length) {
  return fails("fallocate") ? -1 : __real_fallocate(descriptor, mode, offset, length);
}

}  // extern "C"
