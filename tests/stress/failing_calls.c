// Preloaded, this makes one system call fail now and then, for files under one folder only.
//
// FAILING_CALL, FAILING_ERROR (an errno), FAILING_UNDER (a folder), FAILING_AFTER (calls that still
// succeed), FAILING_COUNT (calls that then fail).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long made;

static int is_under(const char* path) {
  const char* folder = getenv("FAILING_UNDER");
  return folder != NULL && path != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_open_under(int descriptor) {
  char name[64], path[4096];
  snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(name, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = '\0';
  return is_under(path);
}

static int is_chosen(const char* call) {
  const char* chosen = getenv("FAILING_CALL");
  return chosen != NULL && strcmp(chosen, call) == 0;
}

// Names are looked up only for the call that fails.
static int fails(const char* call, const char* path, int descriptor) {
  if (!is_chosen(call) || !(path != NULL ? is_under(path) : is_open_under(descriptor))) return 0;
  const long number = atomic_fetch_add(&made, 1) - atol(getenv("FAILING_AFTER"));
  if (number < 0 || number >= atol(getenv("FAILING_COUNT"))) return 0;
  errno = atoi(getenv("FAILING_ERROR"));
  return 1;
}

#define REAL(result, name, ...)       \
  static result (*real)(__VA_ARGS__); \
  if (real == NULL) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

int open(const char* path, int flags, ...) {
  REAL(int, "open", const char*, int, ...);
  va_list arguments;
  va_start(arguments, flags);
  const int mode = va_arg(arguments, int);
  va_end(arguments);
  return fails("open", path, -1) ? -1 : real(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  REAL(int, "open64", const char*, int, ...);
  va_list arguments;
  va_start(arguments, flags);
  const int mode = va_arg(arguments, int);
  va_end(arguments);
  return fails("open", path, -1) ? -1 : real(path, flags, mode);
}

ssize_t pread(int descriptor, void* out, size_t count, off_t offset) {
  REAL(ssize_t, "pread", int, void*, size_t, off_t);
  return fails("pread", NULL, descriptor) ? -1 : real(descriptor, out, count, offset);
}

ssize_t preadv(int descriptor, const struct iovec* pieces, int count, off_t offset) {
  REAL(ssize_t, "preadv", int, const struct iovec*, int, off_t);
  return fails("preadv", NULL, descriptor) ? -1 : real(descriptor, pieces, count, offset);
}

ssize_t pwritev(int descriptor, const struct iovec* pieces, int count, off_t offset) {
  REAL(ssize_t, "pwritev", int, const struct iovec*, int, off_t);
  return fails("pwritev", NULL, descriptor) ? -1 : real(descriptor, pieces, count, offset);
}

ssize_t pwrite(int descriptor, const void* bytes, size_t count, off_t offset) {
  REAL(ssize_t, "pwrite", int, const void*, size_t, off_t);
  return fails("pwrite", NULL, descriptor) ? -1 : real(descriptor, bytes, count, offset);
}

ssize_t pwrite64(int descriptor, const void* bytes, size_t count, off_t offset) {
  return pwrite(descriptor, bytes, count, offset);
}

void* mmap(void* address, size_t length, int protection, int flags, int descriptor, off_t offset) {
  REAL(void*, "mmap", void*, size_t, int, int, int, off_t);
  if (descriptor >= 0 && fails("mmap", NULL, descriptor)) return MAP_FAILED;
  return real(address, length, protection, flags, descriptor, offset);
}

int fstat(int descriptor, struct stat* status) {
  REAL(int, "fstat", int, struct stat*);
  return fails("fstat", NULL, descriptor) ? -1 : real(descriptor, status);
}

int stat(const char* path, struct stat* status) {
  REAL(int, "stat", const char*, struct stat*);
  return fails("stat", path, -1) ? -1 : real(path, status);
}

int fsync(int descriptor) {
  REAL(int, "fsync", int);
  return fails("fsync", NULL, descriptor) ? -1 : real(descriptor);
}

int ftruncate(int descriptor, off_t length) {
  REAL(int, "ftruncate", int, off_t);
  return fails("ftruncate", NULL, descriptor) ? -1 : real(descriptor, length);
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  REAL(int, "linkat", int, const char*, int, const char*, int);
  if (fails("linkat", to, -1)) return -1;
  return real(from_folder, from, to_folder, to, flags);
}

int rename(const char* from, const char* to) {
  REAL(int, "rename", const char*, const char*);
  return fails("rename", to, -1) ? -1 : real(from, to);
}

int mkdir(const char* path, mode_t mode) {
  REAL(int, "mkdir", const char*, mode_t);
  return fails("mkdir", path, -1) ? -1 : real(path, mode);
}

int close(int descriptor) {
  REAL(int, "close", int);
  const int failing = fails("close", NULL, descriptor);
  const int error = errno;
  const int status = real(descriptor);
  return failing ? (errno = error, -1) : status;
}
