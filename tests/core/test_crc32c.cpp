// Tests every kernel that this CPU supports.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/crc32c/crc32c.h"

using namespace tfrfast;

namespace {

const std::uint32_t kBeforeMain =
    crc32c(reinterpret_cast<const std::uint8_t*>("123456789"), sizeof("123456789") - 1);

// Follows the definition, bit by bit.
std::uint32_t reference_step(std::uint32_t raw, std::uint8_t byte) {
  raw ^= byte;
  for (int bit = 0; bit < 8; ++bit) raw = (raw >> 1) ^ ((raw & 1) != 0 ? 0x82f63b78u : 0u);
  return raw;
}

std::uint32_t reference(const std::uint8_t* bytes, std::size_t count, std::uint32_t crc = 0) {
  crc = ~crc;
  for (std::size_t i = 0; i < count; ++i) crc = reference_step(crc, bytes[i]);
  return ~crc;
}

// CRCs of bytes[0, n) for every n up to count.
std::vector<std::uint32_t> reference_prefixes(const std::uint8_t* bytes, std::size_t count) {
  std::vector<std::uint32_t> crcs{0};
  for (std::uint32_t raw = ~0u; crcs.size() <= count;) {
    raw = reference_step(raw, bytes[crcs.size() - 1]);
    crcs.push_back(~raw);
  }
  return crcs;
}

std::vector<std::uint8_t> random_bytes(std::size_t count, unsigned seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> bytes(count + 8);
  for (std::size_t i = 0; i < count; i += 8)
    store_little_endian<std::uint64_t>(&bytes[i], random());
  bytes.resize(count);
  bytes.shrink_to_fit();  // so that the address sanitizer sees the true end
  return bytes;
}

template <class Check>
void for_each_kernel(Check check) {
  for (const Crc32cKernel& kernel : crc32c_kernels()) {
    if (!kernel.supported()) continue;
    INFO(std::string(kernel.name));
    check(kernel);
  }
}

// Called like crc32c(), but copies: checks that the copy is right, and that the bytes around the
// copy are unchanged.
class CheckedCopy {
 public:
  explicit CheckedCopy(Crc32cKernel::Copy copy) : copy_(copy), memory_(kMaxBytes + 256) {}

  std::uint32_t operator()(const std::uint8_t* bytes, std::size_t count, std::uint32_t crc) {
    REQUIRE(count <= kMaxBytes);
    // Each call has another alignment, so that left-over bytes of the last copy would be wrong.
    std::uint8_t* const out = memory_.data() + kMargin + calls_++ % 61;
    std::memset(out - kMargin, kUntouched, kMargin);
    std::memset(out + count, kUntouched, kMargin);
    crc = copy_(out, bytes, count, crc);
    bool right = count == 0 || std::memcmp(out, bytes, count) == 0;
    for (std::size_t i = 0; i < kMargin; ++i) {
      right &= (out - kMargin)[i] == kUntouched && (out + count)[i] == kUntouched;
    }
    if (!right) FAIL_CHECK("a wrong copy of ", count, " bytes");
    return crc;
  }

 private:
  static constexpr std::size_t kMargin = 64, kMaxBytes = 4 << 20;
  static constexpr std::uint8_t kUntouched = 0xa5;
  Crc32cKernel::Copy copy_;
  std::size_t calls_ = 0;
  std::vector<std::uint8_t> memory_;
};

// Each kernel's three ways to compute a CRC, with the same signature.
template <class Check>
void for_each_way(Check check) {
  for_each_kernel([&](const Crc32cKernel& kernel) {
    check(kernel.extend);
    for (const auto each : {kernel.copy, kernel.stream}) {
      INFO(std::string(each == kernel.copy ? "copying" : "streaming"));
      CheckedCopy copy(each);
      check(copy);
    }
  });
}

// Whole pages between two guard pages that fault when touched.
class GuardedPages {
 public:
  explicit GuardedPages(std::size_t pages)
      : page_bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))), bytes_(pages * page_bytes_) {
    map_ = mmap(nullptr, bytes_ + 2 * page_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(map_ != MAP_FAILED);
    REQUIRE(mprotect(begin(), bytes_, PROT_READ | PROT_WRITE) == 0);
  }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;
  ~GuardedPages() { munmap(map_, bytes_ + 2 * page_bytes_); }

  std::uint8_t* begin() const { return static_cast<std::uint8_t*>(map_) + page_bytes_; }
  std::uint8_t* end() const { return begin() + bytes_; }

 private:
  std::size_t page_bytes_, bytes_;
  void* map_;
};

}  // namespace

TEST_CASE("crc32c: known vectors") {
  struct Vector {
    std::vector<std::uint8_t> bytes;
    std::uint32_t crc;
  };
  std::vector<Vector> vectors;
  const std::string_view digits = "123456789";
  vectors.push_back({{}, 0});
  vectors.push_back({{digits.begin(), digits.end()}, 0xe3069283});
  vectors.push_back({{'a'}, 0xc1d04330});
  // RFC 3720, B.4
  vectors.push_back({std::vector<std::uint8_t>(32, 0x00), 0x8a9136aa});
  vectors.push_back({std::vector<std::uint8_t>(32, 0xff), 0x62a8ab43});
  std::vector<std::uint8_t> rising, falling;
  for (std::uint8_t i = 0; i < 32; ++i) {
    rising.push_back(i);
    falling.push_back(static_cast<std::uint8_t>(31 - i));
  }
  vectors.push_back({rising, 0x46dd794e});
  vectors.push_back({falling, 0x113fdb5c});
  vectors.push_back({{0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                      0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
                      0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
                      0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00},
                     0xd9963a56});
  for (const Vector& vector : vectors) {
    CAPTURE(vector.bytes.size());
    CHECK(reference(vector.bytes.data(), vector.bytes.size()) == vector.crc);
    CHECK(crc32c(vector.bytes.data(), vector.bytes.size()) == vector.crc);
    for_each_way([&](auto&& extend) {
      CHECK(extend(vector.bytes.data(), vector.bytes.size(), 0) == vector.crc);
    });
  }
}

TEST_CASE("crc32c: every length to 4096, at every alignment") {
  const auto bytes = random_bytes(4096 + 64);
  for (std::size_t offset = 0; offset < 64; ++offset) {
    CAPTURE(offset);
    const auto expected = reference_prefixes(&bytes[offset], 4096);
    const std::size_t long_step = offset % 9 < 2 ? 1 : 37;
    for_each_way([&](auto&& extend) {
      std::size_t wrong = 0;
      for (std::size_t count = 0; count <= 4096; count += count < 320 ? 1 : long_step) {
        wrong += extend(&bytes[offset], count, 0) != expected[count];
      }
      CHECK(wrong == 0);
    });
  }
}

TEST_CASE("crc32c: continues at every split point") {
  for (const std::size_t total : {64u, 700u, 2500u, 5001u}) {
    CAPTURE(total);
    const auto bytes = random_bytes(total, 2);
    const auto prefixes = reference_prefixes(bytes.data(), total);
    for_each_way([&](auto&& extend) {
      std::size_t wrong = 0;
      for (std::size_t split = 0; split <= total; ++split) {
        wrong += extend(&bytes[0] + split, total - split, prefixes[split]) != prefixes[total];
      }
      CHECK(wrong == 0);
    });
  }
}

TEST_CASE("crc32c: continues from any crc") {
  const auto bytes = random_bytes(6000, 3);
  for (const std::uint32_t crc : {1u, 0x80000000u, 0xffffffffu, 0xdeadbeefu}) {
    for (const std::size_t count :
         {0, 1, 3, 7, 8, 31, 32, 63, 64, 65, 127, 128, 258, 1024, 2432, 6000}) {
      const std::uint32_t expected = reference(bytes.data(), count, crc);
      for_each_way([&](auto&& extend) {
        CAPTURE(count);
        CHECK(extend(bytes.data(), count, crc) == expected);
      });
    }
  }
}

TEST_CASE("crc32c: large buffers of odd sizes") {
  const std::size_t largest = (3 << 20) + 12345;
  const auto bytes = random_bytes(largest, 4);
  const auto expected = reference_prefixes(bytes.data(), largest);
  for_each_way([&](auto&& extend) {
    for (std::size_t count = 4093; count <= largest; count += count / 9) {
      CAPTURE(count);
      CHECK(extend(bytes.data(), count, 0) == expected[count]);
    }
    std::size_t wrong = 0;
    for (std::size_t count = 30000; count < 80000; count += 61) {  // every remainder of a block
      wrong += extend(bytes.data(), count, 0) != expected[count];
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("crc32c: touches nothing outside its bytes") {
  const GuardedPages pages(6), copies(6);
  const auto size = static_cast<std::size_t>(pages.end() - pages.begin());
  std::memcpy(pages.begin(), random_bytes(size, 5).data(), size);
  const auto expected = reference_prefixes(pages.begin(), size);
  for_each_kernel([&](const Crc32cKernel& kernel) {
    std::size_t wrong = 0;
    for (std::size_t count = 0; count <= size; count += count < 700 ? 1 : 97) {
      const std::size_t rest = size - count;
      wrong += kernel.extend(pages.begin(), count, 0) != expected[count];
      wrong += kernel.extend(pages.end() - count, count, expected[rest]) != expected[size];

      for (const auto copy : {kernel.copy, kernel.stream}) {
        std::memset(copies.begin(), 0, size);
        wrong += copy(copies.end() - count, pages.begin(), count, 0) != expected[count];
        wrong += std::memcmp(copies.end() - count, pages.begin(), count) != 0;
        wrong += rest != 0 && copies.begin()[rest - 1] != 0;
        std::memset(copies.begin(), 0, size);
        wrong += copy(copies.begin(), pages.end() - count, count, expected[rest]) != expected[size];
        wrong += std::memcmp(copies.begin(), pages.end() - count, count) != 0;
        wrong += rest != 0 && copies.begin()[count] != 0;
      }
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("crc32c: no bytes need no address") {
  for_each_kernel([](const Crc32cKernel& kernel) {
    CHECK(kernel.extend(nullptr, 0, 77) == 77);
    CHECK(kernel.copy(nullptr, nullptr, 0, 77) == 77);
    CHECK(kernel.stream(nullptr, nullptr, 0, 77) == 77);
  });
}

TEST_CASE("copy_crc32c, stream_crc32c: copy and return the crc of the copy") {
  const auto bytes = random_bytes(5000, 8);
  for (const auto copy : {&copy_crc32c, &stream_crc32c}) {
    std::vector<std::uint8_t> out(bytes.size());
    const std::uint32_t front = copy(out.data(), bytes.data(), 3000, 0);
    CHECK(copy(&out[3000], &bytes[3000], 2000, front) == reference(bytes.data(), 5000));
    CHECK(out == bytes);
  }
}

TEST_CASE("crc32c_u64: equals the crc of the eight bytes") {
  std::mt19937_64 random(6);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t value = random() >> (i % 64);
    std::uint8_t bytes[8];
    store_little_endian(bytes, value);
    const std::uint32_t expected = reference(bytes, 8);
    CHECK(crc32c_u64(value) == expected);
    for_each_kernel([&](const Crc32cKernel& kernel) { CHECK(kernel.of_u64(value) == expected); });
  }
}

TEST_CASE("crc32c: works before main") {
  CHECK(kBeforeMain == 0xe3069283);
}

TEST_CASE("crc32c: the active kernel is the last supported one") {
  const Crc32cKernel* last = nullptr;
  for_each_kernel([&](const Crc32cKernel& kernel) { last = &kernel; });
  CHECK(&active_crc32c_kernel() == last);
  CHECK(crc32c_kernels().front().name == std::string_view("portable"));
  if (const char* expected = std::getenv("TFRFAST_TEST_CRC_KERNEL"); expected != nullptr) {
    CHECK(std::string(last->name) == std::string(expected));
  }
}

TEST_CASE("mask_crc: as TFRecord stores it") {
  CHECK(mask_crc(0).value == 0xa282ead8u);
  CHECK(mask_crc(0x8000u).value == 0xa282ead9u);
  const std::uint8_t digits[] = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  // The length's CRC in a header that TensorFlow wrote, before 257 payload bytes.
  CHECK(mask_crc(crc32c_u64(257)).value == 0x694e4507u);
  CHECK(masked_crc32c(digits, sizeof digits) == mask_crc(0xe3069283u));
}
