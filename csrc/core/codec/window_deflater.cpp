#include "core/codec/window_deflater.h"

#include <cstddef>

#include "core/codec/isal_inflater.h"

namespace tfrfast {
namespace {

constexpr int kZlibLevel = 1;
constexpr std::uint32_t kIsalLevel = 1;
constexpr std::size_t kIsalLevelBytes = 1 << 20;

}  // namespace

struct WindowDeflater::Isal {
  // ISA-L's struct isal_zstream: the public members, and space for more than the private members,
  // which have 84,000 bytes in libisal.so.2.
  struct Stream {
    const std::uint8_t* next_in;
    std::uint32_t avail_in;
    std::uint32_t total_in;
    std::uint8_t* next_out;
    std::uint32_t avail_out;
    std::uint32_t total_out;
    const void* huffman_tables;
    std::uint32_t level;
    std::uint32_t level_bytes;
    std::uint8_t* level_memory;
    std::uint16_t end_of_stream;
    std::uint16_t settings[3];
    std::uint8_t rest[256 << 10];
  };
  static_assert(offsetof(Stream, end_of_stream) == 56);

  // Empty if ISA-L fails.
  std::span<const std::uint8_t> deflate(std::span<const std::uint8_t> window) {
    functions.init(&stream);
    stream.next_in = window.data();
    stream.avail_in = static_cast<std::uint32_t>(window.size());
    stream.next_out = out;
    stream.avail_out = sizeof out;
    stream.level = kIsalLevel;
    stream.level_memory = level_memory;
    stream.level_bytes = sizeof level_memory;
    stream.end_of_stream = 1;
    if (functions.deflate(&stream) != 0 || stream.avail_in > 0) return {};
    return {out, sizeof out - stream.avail_out};
  }

  IsalDeflate functions;
  Stream stream;
  std::uint8_t level_memory[kIsalLevelBytes];
  std::uint8_t out[2 * kDeflateWindowBytes];
};

WindowDeflater::WindowDeflater() {
  static const bool works = isal_passes_trial();
  if (!works) return;
  isal_ = std::make_unique_for_overwrite<Isal>();
  isal_->functions = *isal_deflate();
}

WindowDeflater::~WindowDeflater() = default;

std::span<const std::uint8_t> WindowDeflater::deflate(std::span<const std::uint8_t> window) {
  const auto deflated = isal_ == nullptr ? std::span<const std::uint8_t>() : isal_->deflate(window);
  if (!deflated.empty()) return deflated;
  if (!zlib_) zlib_.emplace(kZRawWindow, kZlibLevel);
  return zlib_->deflate(window);
}

// Rejects a library of the same name that works differently: zlib must read the result.
bool WindowDeflater::isal_passes_trial() {
  const IsalDeflate* const functions = isal_deflate();
  if (functions == nullptr) return false;
  const auto isal = std::make_unique_for_overwrite<Isal>();
  isal->functions = *functions;
  std::vector<std::uint8_t> window(kDeflateWindowBytes);
  std::uint32_t noise = 1;
  for (std::uint8_t& byte : window) {
    noise = noise * 1664525 + 1013904223;
    byte = static_cast<std::uint8_t>(noise >> 28);
  }
  std::vector<std::uint8_t> again(window.size() + 1);
  const auto inflater = make_inflater(Inflater::Kind::zlib);
  inflater->begin();
  const Inflater::Inflated step = inflater->step(isal->deflate(window), again, false);
  again.resize(step.produced);
  return step.stop == Inflater::Stop::stream_end && again == window;
}

}  // namespace tfrfast
