// Raw deflate data to bytes, from the beginning of a stream or from a block boundary inside it.
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
    stream_end,  // behind the last block; input left over is not the stream's
    corrupt,     // what follows is no deflate data
  };
  struct Step {
    Stop stop = Stop::needs_input;
    std::ptrdiff_t consumed = 0;  // below 0 if bytes of steps before are given back
    std::size_t produced = 0;
    unsigned unused_bits = 0;  // at a block's end: of the last byte consumed, the next block's
  };

  virtual ~Inflater() = default;

  // The next byte of input is the first one of a stream or, with `bits` > 0, what follows a byte
  // whose upper `bits` bits are `value` and belong to the stream too. `window` holds what the
  // stream brought before, its last kDeflateWindowBytes if there was so much.
  virtual void begin(unsigned bits = 0, unsigned value = 0,
                     std::span<const std::uint8_t> window = {}) = 0;
  virtual Step step(std::span<const std::uint8_t> in, std::span<std::uint8_t> out,
                    bool stop_at_block_ends) = 0;
};

// zlib's, which can tell where blocks end. Throws Error io without a zlib.
std::unique_ptr<Inflater> make_zlib_inflater();

// The fastest there is on this machine. It need not stop at block ends, even if asked to.
std::unique_ptr<Inflater> make_fast_inflater();

}  // namespace tfrfast
