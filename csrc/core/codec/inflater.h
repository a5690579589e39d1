// Inflates raw deflate data, from the beginning of a stream or from a block boundary inside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tfrfast {

// Deflate's matches reach back this far.
inline constexpr std::size_t kDeflateWindowBytes = 32 << 10;

// One thread at a time.
class Inflater {
 public:
  enum class Stop : std::uint8_t {
    needs_input,
    output_full,
    block_end,   // between two blocks, if that was asked for
    stream_end,  // after the last block; input left over is not part of the stream
    corrupt,     // what follows is not deflate data
  };
  struct Step {
    Stop stop = Stop::needs_input;
    std::ptrdiff_t consumed = 0;  // below 0 if bytes of earlier steps are given back
    std::size_t produced = 0;
    unsigned unused_bits = 0;  // at a block's end: bits of the last byte that the next block owns
  };

  virtual ~Inflater() = default;

  // Begins a stream or, with a `window`, continues inside one. `window` holds what the stream
  // produced before, up to kDeflateWindowBytes of it. With `bits` > 0, input begins with the lower
  // `bits` bits of `value`.
  virtual void begin(unsigned bits = 0, unsigned value = 0,
                     std::span<const std::uint8_t> window = {}) = 0;
  virtual Step step(std::span<const std::uint8_t> in, std::span<std::uint8_t> out,
                    bool stop_at_block_ends) = 0;
};

// With zlib, which can tell where blocks end. Throws Error io if the machine has no zlib.
std::unique_ptr<Inflater> make_zlib_inflater();

// The fastest one on this machine. It may not stop at block ends, even if asked to.
std::unique_ptr<Inflater> make_fast_inflater();

}  // namespace tfrfast
