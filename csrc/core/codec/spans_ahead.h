// Which spans of a compressed shard have been announced to a far storage and are still to be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace tfrfast {

// Several records are read from one span, and it is inflated once, or not at all if it is in the
// SpanCache. So a span is asked for with the first record that is announced, and once the last of
// them was read, it is known whether somebody took the answer. Safe from many threads, and across
// fork().
class SpansAhead {
 public:
  // That many bytes of the span will be read. True if it has to be asked for, since it is not
  // inflated yet and nobody has asked.
  bool expect(std::size_t span, std::uint64_t bytes, bool is_inflated);
  // They have been read, or will not be. True if they were the last ones and nobody took the
  // answer, which then has to be withdrawn.
  bool settle(std::size_t span, std::uint64_t bytes);
  // Whether it was asked for. If so, the answer is the caller's.
  bool take(std::size_t span);
  bool is_asked_for(std::size_t span) const;
  void forget() noexcept;

 private:
  struct Expected {
    std::uint64_t bytes = 0;
    bool is_asked_for = false;
  };
  std::map<std::size_t, Expected> spans_;
};

}  // namespace tfrfast
