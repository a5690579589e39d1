// Encodes int64 values as packed varints. With BMI2, one instruction spreads a value's groups of
// seven bits, and one store writes eight bytes. The next varint overwrites the bytes past the end.
#include <cstring>

#include "core/base/bytes.h"
#include "core/example/encode.h"
#include "core/example/fast_bmi2.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace tfrfast {
namespace {

// The longest varint, or the furthest byte that a store touches.
constexpr std::ptrdiff_t kReach = 10;

// A single load: another thread may be writing the value.
inline std::uint64_t load_once(const std::int64_t* value) noexcept {
  return static_cast<std::uint64_t>(__atomic_load_n(value, __ATOMIC_RELAXED));
}

// Returns null if the value does not fit because another thread changed the value.
inline std::uint8_t* put_if_it_fits(std::uint64_t value, std::uint8_t* out,
                                    const std::uint8_t* space_end) noexcept {
  if (static_cast<std::ptrdiff_t>(varint_bytes(value)) > space_end - out) return nullptr;
  return put_varint(out, value);
}

std::size_t measure_portably(const std::int64_t* values, std::size_t count) noexcept {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    bytes += varint_bytes(static_cast<std::uint64_t>(values[i]));
  }
  return bytes;
}

std::uint8_t* write_portably(const std::int64_t* values, std::size_t count, std::uint8_t* out,
                             const std::uint8_t* space_end) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t value = load_once(values + i);
    if (space_end - out >= kReach) [[likely]] {
      out = put_varint(out, value);
    } else if ((out = put_if_it_fits(value, out, space_end)) == nullptr) {
      return nullptr;
    }
  }
  return out;
}

constexpr VarintWriter kPortable = {&measure_portably, &write_portably};

#if defined(__x86_64__)

__attribute__((target("lzcnt"))) std::size_t measure_with_lzcnt(const std::int64_t* values,
                                                                std::size_t count) noexcept {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto zeros =
        static_cast<unsigned>(__builtin_clzll(static_cast<unsigned long long>(values[i]) | 1));
    bytes += ((64 - zeros) * 9 + 64) / 64;
  }
  return bytes;
}

__attribute__((target("bmi2,lzcnt"))) std::uint8_t* write_with_bmi2(
    const std::int64_t* values, std::size_t count, std::uint8_t* out,
    const std::uint8_t* space_end) noexcept {
  constexpr std::uint64_t kContinued = 0x8080808080808080u;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t value = load_once(values + i);
    if (space_end - out < kReach) {
      if ((out = put_if_it_fits(value, out, space_end)) == nullptr) return nullptr;
      continue;
    }
    std::uint64_t groups = _pdep_u64(value, ~kContinued);
    if (value < std::uint64_t{1} << 56) {
      const unsigned bytes = (static_cast<unsigned>(64 - __builtin_clzll(value | 1)) * 9 + 64) / 64;
      groups |= _bzhi_u64(kContinued, 8 * (bytes - 1));
      std::memcpy(out, &groups, sizeof groups);
      out += bytes;
    } else {  // nine bytes, or ten for a negative number
      groups |= kContinued;
      std::memcpy(out, &groups, sizeof groups);
      out = put_varint(out + sizeof groups, value >> 56);
    }
  }
  return out;
}

constexpr VarintWriter kBmi2 = {&measure_with_lzcnt, &write_with_bmi2};

bool cpu_has_bmi2() noexcept {
  __builtin_cpu_init();
  // Not every compiler's __builtin_cpu_supports knows LZCNT.
  constexpr unsigned kLzcntBit = 1u << 5;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __builtin_cpu_supports("bmi2") && __get_cpuid(0x80000001u, &eax, &ebx, &ecx, &edx) != 0 &&
         (ecx & kLzcntBit) != 0;
}

#endif

}  // namespace

const VarintWriter* varint_writer(const char* name) noexcept {
  if (std::strcmp(name, "portable") == 0) return &kPortable;
#if defined(__x86_64__)
  if (std::strcmp(name, "bmi2") == 0 && cpu_has_bmi2()) return &kBmi2;
#endif
  return nullptr;
}

const VarintWriter& fastest_varint_writer() noexcept {
  const VarintWriter* const bmi2 = varint_writer("bmi2");
  return bmi2 != nullptr && cpu_has_fast_bmi2() ? *bmi2 : kPortable;
}

}  // namespace tfrfast
