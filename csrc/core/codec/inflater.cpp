#include "core/codec/inflater.h"

#include <algorithm>
#include <climits>
#include <new>

#include "core/codec/isal_inflater.h"
#include "core/codec/zlib.h"

namespace tfrfast {
namespace {

// The flags with which zlib describes its place in `data_type`.
constexpr int kUnusedBits = 7, kInLastBlock = 64, kAtBlockEnd = 128;

unsigned clamped(std::size_t count) {
  return static_cast<unsigned>(std::min<std::size_t>(count, UINT_MAX));
}

class ZlibInflater final : public Inflater {
 public:
  ZlibInflater() : zlib_(zlib()) {
    if (zlib_.inflate_init(&stream_, kZRawWindow, zlib_.version(), sizeof stream_) != kZOk) {
      throw std::bad_alloc();
    }
  }
  ~ZlibInflater() override { zlib_.inflate_end(&stream_); }

  Kind kind() const noexcept override { return Kind::zlib; }

  void begin(unsigned bits, unsigned value, std::span<const std::uint8_t> window) override {
    zlib_.inflate_reset(&stream_);
    if (bits > 0) {
      zlib_.inflate_prime(&stream_, static_cast<int>(bits), static_cast<int>(value));
    }
    if (!window.empty()) {
      zlib_.inflate_set_dictionary(&stream_, window.data(), clamped(window.size()));
    }
  }

  Inflated step(std::span<const std::uint8_t> in, std::span<std::uint8_t> out,
                bool stop_at_block_ends) override {
    stream_.next_in = in.data();
    stream_.avail_in = clamped(in.size());
    stream_.next_out = out.data();
    stream_.avail_out = clamped(out.size());
    int answer = kZOk;
    do {
      answer = zlib_.inflate(&stream_, stop_at_block_ends ? kZBlock : kZNoFlush);
      // After the last block zlib stops twice.
    } while (answer == kZOk && stop_at_block_ends && (stream_.data_type & kAtBlockEnd) != 0 &&
             (stream_.data_type & kInLastBlock) != 0);
    Inflated step{Stop::needs_input, stream_.next_in - in.data(),
                  static_cast<std::size_t>(stream_.next_out - out.data())};
    if (answer == kZMemoryError) throw std::bad_alloc();
    if (answer == kZStreamEnd) {
      step.stop = Stop::stream_end;
    } else if (answer != kZOk && answer != kZBufferError) {
      step.stop = Stop::corrupt;
    } else if (stop_at_block_ends && (stream_.data_type & kAtBlockEnd) != 0) {
      step.stop = Stop::block_end;
      step.unused_bits = static_cast<unsigned>(stream_.data_type & kUnusedBits);
    } else if (stream_.avail_out == 0) {
      step.stop = Stop::output_full;
    }
    return step;
  }

 private:
  const Zlib& zlib_;
  ZStream stream_;
};

}  // namespace

std::unique_ptr<Inflater> make_inflater(Inflater::Kind kind) {
  if (kind == Inflater::Kind::fastest) {
    if (std::unique_ptr<Inflater> isal = make_isal_inflater(); isal != nullptr) return isal;
  }
  return std::make_unique<ZlibInflater>();
}

}  // namespace tfrfast
