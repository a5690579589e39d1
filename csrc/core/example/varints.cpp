#include "core/example/varints.h"

#include <bit>
#include <cstring>

#include "core/base/bytes.h"
#include "core/example/fast_bmi2.h"
#include "core/example/varints_avx512.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tfrfast {
namespace {

constexpr std::ptrdiff_t kBlockBytes = 64;
// Each load takes eight bytes, even for a value that starts on a block's last byte.
constexpr std::ptrdiff_t kBlockReach = kBlockBytes + 7;
constexpr std::ptrdiff_t kLongestVarint = 10;

inline std::uint64_t load64(const std::uint8_t* bytes) noexcept {
  return load_little_endian<std::uint64_t>(bytes);
}

// Bit i of the result is set if byte i of the block ends a varint.
inline std::uint64_t ends_in_block(const std::uint8_t* block) noexcept {
#if defined(__x86_64__)
  std::uint64_t continued = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 16 * i));
    continued |= static_cast<std::uint64_t>(_mm_movemask_epi8(bytes)) << (16 * i);
  }
  return ~continued;
#else
  std::uint64_t ends = 0;
  for (unsigned i = 0; i < 8; ++i) {
    const std::uint64_t high = ~load64(block + 8 * i) & 0x8080808080808080u;
    ends |= ((high >> 7) * 0x0102040810204080u >> 56) << (8 * i);
  }
  return ends;
#endif
}

struct PortablePacking {
  // Joins the low seven bits of each of the first `count` bytes (1 to 8).
  static inline std::uint64_t join(std::uint64_t bytes, unsigned count) noexcept {
    std::uint64_t x = bytes & (~std::uint64_t{0} >> (64 - 8 * count)) & 0x7f7f7f7f7f7f7f7fu;
    x = (x & 0x007f007f007f007fu) | (x & 0x7f007f007f007f00u) >> 1;
    x = (x & 0x00003fff00003fffu) | (x & 0x3fff00003fff0000u) >> 2;
    return (x & 0x0fffffffu) | (x & 0x0fffffff00000000u) >> 4;
  }
  static inline int count(std::uint64_t bits) noexcept { return std::popcount(bits); }
};

inline void widen_block(const std::uint8_t* block, std::int64_t* out) noexcept {
  for (std::ptrdiff_t i = 0; i < kBlockBytes; ++i) out[i] = block[i];
}

// Decodes byte by byte, for input shorter than a block.
std::ptrdiff_t decode_slowly(WireBytes varints, std::int64_t* out, std::size_t space) noexcept {
  WireReader reader(varints);
  std::size_t count = 0;
  std::uint64_t value;
  for (; !reader.at_end(); ++count) {
    if (count == space) return kTooManyVarints;
    if (!reader.read_varint(value)) return kBadVarints;
    out[count] = static_cast<std::int64_t>(value);
  }
  return static_cast<std::ptrdiff_t>(count);
}

struct LoadAnywhere {
  std::uint64_t operator()(const std::uint8_t* bytes) const noexcept { return load64(bytes); }
};

struct LoadBefore {
  const std::uint8_t* readable_end;
  std::uint64_t operator()(const std::uint8_t* bytes) const noexcept {
    return load64_before(bytes, readable_end);
  }
};

// The decoder's state: where the next value starts, and where it will be written.
struct Progress {
  const std::uint8_t* start;
  std::int64_t* to;
};

// Decodes the values that end in the block. False if a value has more than ten bytes.
template <class Packing, class Load>
__attribute__((always_inline)) inline bool take_values(const std::uint8_t* block,
                                                       std::uint64_t ends, Load load,
                                                       Progress& progress) noexcept {
  const std::uint8_t* start = progress.start;
  std::int64_t* to = progress.to;
  for (; ends != 0; ends &= ends - 1) {
    const std::uint8_t* const after = block + std::countr_zero(ends) + 1;
    const std::ptrdiff_t bytes = after - start;
    std::uint64_t value = load(start);
    if (bytes <= 8) [[likely]] {
      value = Packing::join(value, static_cast<unsigned>(bytes));
    } else {
      if (bytes > kLongestVarint) return false;
      value = Packing::join(value, 8) | static_cast<std::uint64_t>(start[8] & 0x7f) << 56;
      if (bytes == kLongestVarint) value |= static_cast<std::uint64_t>(start[9]) << 63;
    }
    *to++ = static_cast<std::int64_t>(value);
    start = after;
  }
  progress = {start, to};
  return true;
}

template <class Packing>
__attribute__((always_inline)) inline std::ptrdiff_t decode_blocks(
    WireBytes varints, WireBytes around, std::int64_t* const out,
    const std::size_t space) noexcept {
  if (around.size() < kBlockBytes) [[unlikely]]
    return decode_slowly(varints, out, space);
  const std::uint8_t* const end = varints.data() + varints.size();
  const std::uint8_t* const readable_end = around.data() + around.size();
  const std::uint8_t* block = varints.data();
  Progress progress{block, out};
  std::int64_t* const out_end = out + space;
  for (; block < end; block += kBlockBytes) {
    // If no whole block can be loaded here, the last loadable block contains these bytes at its
    // upper end.
    const std::ptrdiff_t readable = readable_end - block;
    std::uint64_t ends = readable >= kBlockBytes ? ends_in_block(block)
                                                 : ends_in_block(readable_end - kBlockBytes) >>
                                                       (kBlockBytes - readable);
    if (end - block < kBlockBytes) ends &= (std::uint64_t{1} << (end - block)) - 1;
    const int values = Packing::count(ends);
    if (values > out_end - progress.to) return kTooManyVarints;
    if (values == kBlockBytes && progress.start == block) {
      widen_block(block, progress.to);
      progress = {block + kBlockBytes, progress.to + kBlockBytes};
      continue;
    }
    const bool ok = readable >= kBlockReach
                        ? take_values<Packing>(block, ends, LoadAnywhere{}, progress)
                        : take_values<Packing>(block, ends, LoadBefore{readable_end}, progress);
    if (!ok) return kBadVarints;
  }
  return progress.start == end ? progress.to - out : kBadVarints;
}

std::ptrdiff_t decode_portably(WireBytes varints, WireBytes around, std::int64_t* out,
                               std::size_t space) noexcept {
  return decode_blocks<PortablePacking>(varints, around, out, space);
}

#if defined(__x86_64__)
struct Bmi2Packing {
  __attribute__((target("bmi2"))) static inline std::uint64_t join(std::uint64_t bytes,
                                                                   unsigned count) noexcept {
    return _pext_u64(bytes, _bzhi_u64(0x7f7f7f7f7f7f7f7fu, 8 * count));
  }
  __attribute__((target("popcnt"))) static inline int count(std::uint64_t bits) noexcept {
    return static_cast<int>(_mm_popcnt_u64(bits));
  }
};

__attribute__((target("bmi2,bmi,avx2,popcnt"))) std::ptrdiff_t decode_with_bmi2(
    WireBytes varints, WireBytes around, std::int64_t* out, std::size_t space) noexcept {
  return decode_blocks<Bmi2Packing>(varints, around, out, space);
}

bool cpu_has_bmi2() noexcept {
  __builtin_cpu_init();
  return __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt");
}
#endif

const DecodeVarints kKernel = varint_kernel(active_varint_kernel());

}  // namespace

const char* active_varint_kernel() noexcept {
  if (varint_kernel("avx512") != nullptr) return "avx512";
  if (varint_kernel("bmi2") != nullptr && cpu_has_fast_bmi2()) return "bmi2";
  return "portable";
}

DecodeVarints varint_kernel(const char* name) noexcept {
  if (std::strcmp(name, "portable") == 0) return &decode_portably;
#if defined(__x86_64__)
  if (std::strcmp(name, "bmi2") == 0 && cpu_has_bmi2()) return &decode_with_bmi2;
  if (std::strcmp(name, "avx512") == 0 && cpu_has_avx512_vbmi2()) return &decode_varints_avx512;
#endif
  return nullptr;
}

std::size_t count_varints(WireBytes varints) noexcept {
  std::size_t count = 0;
  for (const std::uint8_t byte : varints) count += byte < 0x80;
  return count;
}

bool decode_one_varint(WireBytes varint, WireBytes around, std::int64_t& value) noexcept {
  const std::size_t bytes = varint.size();
  if (bytes - 1 < 8 && around.size() >= 8) [[likely]] {
    const std::uint64_t word = load64_before(varint.data(), around.data() + around.size());
    const std::uint64_t ends = ~word & (0x8080808080808080u >> (64 - 8 * bytes));
    if (ends != std::uint64_t{0x80} << (8 * bytes - 8)) return false;
    value = static_cast<std::int64_t>(PortablePacking::join(word, static_cast<unsigned>(bytes)));
    return true;
  }
  return decode_slowly(varint, &value, 1) == 1;
}

std::ptrdiff_t decode_varints(WireBytes varints, WireBytes around, std::int64_t* out,
                              std::size_t space) noexcept {
  // The kernels pay only for more than one value.
  if (varints.size() <= 8 && space != 0 && decode_one_varint(varints, around, *out)) return 1;
  return kKernel(varints, around, out, space);
}

}  // namespace tfrfast
