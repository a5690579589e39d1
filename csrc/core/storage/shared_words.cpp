#include "core/storage/shared_words.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/storage/fault_guard.h"

namespace tfrfast {
namespace {

// The thread sanitizer's own atomics hold a lock, which a fault would leave held. So these are the
// processor's.
#define TFRFAST_PLAIN_ATOMIC __attribute__((no_sanitize("thread")))

TFRFAST_PLAIN_ATOMIC std::uint64_t load_word(const std::uint64_t* at) noexcept {
  return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

TFRFAST_PLAIN_ATOMIC void store_word(std::uint64_t* at, std::uint64_t value) noexcept {
  __atomic_store_n(at, value, __ATOMIC_RELEASE);
}

TFRFAST_PLAIN_ATOMIC bool exchange_word(std::uint64_t* at, std::uint64_t* expected,
                                        std::uint64_t desired) noexcept {
  return __atomic_compare_exchange_n(at, expected, desired, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE);
}

#undef TFRFAST_PLAIN_ATOMIC

}  // namespace

std::unique_ptr<SharedWords> SharedWords::open(const std::string& path, std::size_t words) {
  install_fault_guard();
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return nullptr;
  const std::size_t bytes = words * sizeof(std::uint64_t);
  struct stat status;
  void* mapping = MAP_FAILED;
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
      static_cast<std::uint64_t>(status.st_size) >= bytes) {
    mapping = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  ::close(descriptor);
  if (mapping == MAP_FAILED) return nullptr;
  return std::unique_ptr<SharedWords>(new SharedWords(static_cast<std::uint64_t*>(mapping), words));
}

int SharedWords::make(const std::string& path, std::size_t words) noexcept {
  constexpr std::size_t kPiece = 8192;  // words
  static constexpr std::uint64_t kZeros[kPiece] = {};
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return errno;
  int failed = 0;
  // Written, not only extended: a mapping of a hole raises SIGBUS when the disk is full.
  for (std::size_t left = words * sizeof(std::uint64_t); left > 0 && failed == 0;) {
    const ssize_t put = ::write(descriptor, kZeros, std::min(left, sizeof kZeros));
    if (put > 0) left -= static_cast<std::size_t>(put);
    if (put == 0) failed = ENOSPC;
    if (put < 0 && errno != EINTR) failed = errno;
  }
  if (::close(descriptor) != 0 && failed == 0) failed = errno;
  if (failed != 0) ::unlink(path.c_str());
  return failed;
}

SharedWords::~SharedWords() {
  ::munmap(words_, count_ * sizeof(std::uint64_t));
}

std::uint64_t SharedWords::load(std::size_t word) const noexcept {
  std::uint64_t value = 0;
  std::uint64_t* const out = &value;
  const std::uint64_t* const at = words_ + word;
  if (!run_guarded([=] { *out = load_word(at); })) return 0;
  return value;
}

void SharedWords::store(std::size_t word, std::uint64_t value) const noexcept {
  std::uint64_t* const at = words_ + word;
  run_guarded([=] { store_word(at, value); });
}

bool SharedWords::exchange(std::size_t word, std::uint64_t& expected,
                           std::uint64_t desired) const noexcept {
  std::uint64_t* const at = words_ + word;
  std::uint64_t found = expected;
  std::uint64_t* const found_at = &found;
  bool done = false;
  bool* const done_at = &done;
  const bool readable = run_guarded([=] { *done_at = exchange_word(at, found_at, desired); });
  expected = readable ? found : 0;
  return readable && done;
}

std::uint64_t SharedWords::count_set(std::size_t begin) const noexcept {
  std::uint64_t count = 0;
  std::uint64_t* const out = &count;
  const std::uint64_t* const words = words_;
  const std::size_t end = count_;
  const bool readable = run_guarded([=] {
    std::uint64_t set = 0;
    for (std::size_t i = begin; i < end; ++i) set += words[i] != 0;
    *out = set;
  });
  return readable ? count : end - std::min(begin, end);
}

}  // namespace tfrfast
