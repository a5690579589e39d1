// Inflates raw deflate data from the beginning of a stream, or from a block boundary inside a
// stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tfrfast {

// A deflate match reaches back at most this far.
inline constexpr std::size_t kDeflateWindowBytes = 32 << 10;

// One thread at a time.
class Inflater {
 public:
  enum class Kind : std::uint8_t {
    fastest,  // the machine's fastest inflater; may pass over some block ends
    zlib,     // stops at every block end
  };
  enum class Stop : std::uint8_t {
    needs_input,
    output_full,
    block_end,   // between two blocks; only on request
    stream_end,  // after the last block; further input is not part of the stream
    corrupt,     // the next bytes are not deflate data
  };
  struct Inflated {
    Stop stop = Stop::needs_input;
    std::ptrdiff_t consumed = 0;  // negative if bytes of earlier steps are returned
    std::size_t produced = 0;
    // At a block's end: bits of the last byte that belong to the next block.
    unsigned unused_bits = 0;
  };

  virtual ~Inflater() = default;

  virtual Kind kind() const noexcept = 0;

  // Begins a stream or, with a `window`, continues inside a stream. `window` holds the last output
  // before this place, up to kDeflateWindowBytes. With `bits` > 0, the input begins with the lower
  // `bits` bits of `value`.
  virtual void begin(unsigned bits = 0, unsigned value = 0,
                     std::span<const std::uint8_t> window = {}) = 0;
  virtual Inflated step(std::span<const std::uint8_t> in, std::span<std::uint8_t> out,
                        bool stop_at_block_ends) = 0;
};

// Throws Error io if the machine has no zlib.
std::unique_ptr<Inflater> make_inflater(Inflater::Kind kind);

}  // namespace tfrfast
