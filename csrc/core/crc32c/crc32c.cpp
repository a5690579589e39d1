#include "core/crc32c/crc32c.h"

#include "core/crc32c/copy_in_pieces.h"
#include "core/crc32c/kernels.h"

namespace tfrfast {
namespace {

namespace detail = crc32c_detail;

constexpr Crc32cKernel kKernels[] = {
    {"portable", detail::portable::supported, detail::portable::extend,
     detail::copy_in_pieces<detail::portable::extend>,
     detail::copy_in_pieces<detail::portable::extend>, detail::portable::of_u64},
#if defined(TFRFAST_CRC32C_X86)
    {"sse4.2", detail::sse42::supported, detail::sse42::extend,
     detail::copy_in_pieces<detail::sse42::extend, detail::sse42::copy>,
     detail::copy_in_pieces<detail::sse42::extend, detail::sse42::copy>, detail::sse42::of_u64},
    {"avx2", detail::avx2::supported, detail::avx2::extend, detail::avx2::copy,
     detail::avx2::stream, detail::sse42::of_u64},
    {"avx512", detail::avx512::supported, detail::avx512::extend, detail::avx512::copy,
     detail::avx512::stream, detail::sse42::of_u64},
#elif defined(TFRFAST_CRC32C_ARM)
    {"armv8", detail::armv8::supported, detail::armv8::extend, detail::armv8::copy,
     detail::armv8::copy, detail::armv8::of_u64},
#if defined(TFRFAST_CRC32C_ARM_SHA3)
    {"armv8+sha3", detail::armv8_sha3::supported, detail::armv8_sha3::extend,
     detail::armv8_sha3::copy, detail::armv8_sha3::copy, detail::armv8::of_u64},
#endif
#endif
};

constinit std::atomic<const Crc32cKernel*> active_kernel = nullptr;

const Crc32cKernel& choose() noexcept {
  const Crc32cKernel* chosen = kKernels;
  for (const Crc32cKernel& kernel : kKernels) {
    if (kernel.supported()) chosen = &kernel;
  }
  // Racing threads store equal values, and no value depends on another, so no order matters.
  active_kernel.store(chosen, std::memory_order_relaxed);
  detail::active_extend.store(chosen->extend, std::memory_order_relaxed);
  detail::active_copy.store(chosen->copy, std::memory_order_relaxed);
  detail::active_stream.store(chosen->stream, std::memory_order_relaxed);
  detail::active_of_u64.store(chosen->of_u64, std::memory_order_relaxed);
  return *chosen;
}

std::uint32_t choose_and_extend(const std::uint8_t* bytes, std::size_t count,
                                std::uint32_t crc) noexcept {
  return choose().extend(bytes, count, crc);
}

std::uint32_t choose_and_copy(std::uint8_t* out, const std::uint8_t* bytes, std::size_t count,
                              std::uint32_t crc) noexcept {
  return choose().copy(out, bytes, count, crc);
}

std::uint32_t choose_and_stream(std::uint8_t* out, const std::uint8_t* bytes, std::size_t count,
                                std::uint32_t crc) noexcept {
  return choose().stream(out, bytes, count, crc);
}

std::uint32_t choose_and_do_u64(std::uint64_t value) noexcept {
  return choose().of_u64(value);
}

}  // namespace

constinit std::atomic<Crc32cKernel::Extend> detail::active_extend = choose_and_extend;
constinit std::atomic<Crc32cKernel::Copy> detail::active_copy = choose_and_copy;
constinit std::atomic<Crc32cKernel::Copy> detail::active_stream = choose_and_stream;
constinit std::atomic<Crc32cKernel::OfU64> detail::active_of_u64 = choose_and_do_u64;

std::span<const Crc32cKernel> crc32c_kernels() noexcept {
  return kKernels;
}

const Crc32cKernel& active_crc32c_kernel() noexcept {
  const Crc32cKernel* const active = active_kernel.load(std::memory_order_relaxed);
  return active != nullptr ? *active : choose();
}

}  // namespace tfrfast
