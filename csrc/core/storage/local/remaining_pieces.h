// The work that a call of preadv() or pwritev() leaves: such a call may stop early, anywhere.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tfrfast {

// The pieces of memory still to be read into, or written. Changes the given array, and refers to
// it. The first piece is never empty.
class RemainingPieces {
 public:
  RemainingPieces(iovec* pieces, int count) noexcept : first_(pieces), count_(count) { advance(0); }

  iovec* first() const noexcept { return first_; }
  int count() const noexcept { return count_; }  // 0 at the end

  // The next `bytes` bytes, at most the remaining bytes, have been read or written.
  void advance(std::size_t bytes) noexcept {
    for (; count_ > 0; ++first_, --count_) {
      const std::size_t done = std::min(bytes, first_->iov_len);
      first_->iov_base = static_cast<std::uint8_t*>(first_->iov_base) + done;
      first_->iov_len -= done;
      bytes -= done;
      if (first_->iov_len > 0) return;
    }
  }

 private:
  iovec* first_;
  int count_;
};

}  // namespace tfrfast
