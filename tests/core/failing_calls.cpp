#include "failing_calls.h"

#include <pwd.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace tfrfast::testing {
namespace {

std::atomic<const char*> failing{nullptr};
std::atomic<int> allowed_left{0};
std::atomic<int> made{0};
int failing_error = 0;
std::atomic<pid_t> process_number{0};  // 0: the real number

std::atomic<ino_t> pretended_inode{0};
uid_t pretended_owner = 0;

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

SameProcessNumber::SameProcessNumber() {
  process_number = ::getpid();
}

SameProcessNumber::~SameProcessNumber() {
  process_number = 0;
}

PretendedOwner::PretendedOwner(const std::string& path, unsigned owner) {
  struct stat status = {};
  ::stat(path.c_str(), &status);
  pretended_owner = owner;
  pretended_inode = status.st_ino;
}

PretendedOwner::~PretendedOwner() {
  pretended_inode = 0;
}

}  // namespace tfrfast::testing

using tfrfast::testing::failing_error;
using tfrfast::testing::fails;
using tfrfast::testing::pretended_inode;
using tfrfast::testing::pretended_owner;
using tfrfast::testing::process_number;

extern "C" {

ssize_t __real_pwritev(int, const iovec*, int, off_t);
ssize_t __wrap_pwritev(int descriptor, const iovec* pieces, int count, off_t offset) {
  if (!fails("pwritev")) return __real_pwritev(descriptor, pieces, count, offset);
  if (failing_error != 0) return -1;
  while (pieces->iov_len == 0) ++pieces;
  const iovec byte{pieces->iov_base, 1};
  return __real_pwritev(descriptor, &byte, 1, offset);
}

ssize_t __real_pwrite(int, const void*, std::size_t, off_t);
ssize_t __wrap_pwrite(int descriptor, const void* bytes, std::size_t count, off_t offset) {
  return fails("pwrite") ? -1 : __real_pwrite(descriptor, bytes, count, offset);
}

ssize_t __real_preadv(int, const iovec*, int, off_t);
ssize_t __wrap_preadv(int descriptor, const iovec* pieces, int count, off_t offset) {
  return fails("preadv") ? -1 : __real_preadv(descriptor, pieces, count, offset);
}

int __real_fstat(int, struct stat*);
int __wrap_fstat(int descriptor, struct stat* status) {
  const int result = __real_fstat(descriptor, status);
  if (result == 0 && status->st_ino == pretended_inode) status->st_uid = pretended_owner;
  return result;
}

int __real_getpwuid_r(uid_t, passwd*, char*, std::size_t, passwd**);
int __wrap_getpwuid_r(uid_t number, passwd* entry, char* text, std::size_t bytes, passwd** user) {
  if (!fails("getpwuid_r")) return __real_getpwuid_r(number, entry, text, bytes, user);
  *user = nullptr;
  return failing_error;
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

pid_t __real_getpid();
pid_t __wrap_getpid() {
  const pid_t number = process_number;
  return number != 0 ? number : __real_getpid();
}

}  // extern "C"
