// Compresses the windows of seek points, with ISA-L where it is available.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/codec/deflater.h"
#include "core/codec/inflater.h"

namespace tfrfast {

// A window is written once and seldom read, so its compression should be fast. ISA-L takes a fifth
// of zlib's time. One thread at a time.
class WindowDeflater {
 public:
  WindowDeflater();
  ~WindowDeflater();
  WindowDeflater(const WindowDeflater&) = delete;
  WindowDeflater& operator=(const WindowDeflater&) = delete;

  // Returns raw deflate data, valid until the next call. `window` has at most kDeflateWindowBytes.
  std::span<const std::uint8_t> deflate(std::span<const std::uint8_t> window);

 private:
  struct Isal;
  static bool isal_passes_trial();

  std::unique_ptr<Isal> isal_;    // may be null
  std::optional<Deflater> zlib_;  // made at the first use
};

}  // namespace tfrfast
