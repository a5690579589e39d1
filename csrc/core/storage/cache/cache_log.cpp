#include "core/storage/cache/cache_log.h"

#include <bit>
#include <cstring>

#include "core/crc32c/crc32c.h"

namespace tfrfast {
namespace {

constexpr char kMagic[8] = {'T', 'F', 'R', 'C', 'A', 'C', 'H', '2'};

struct FixedHeader {
  char magic[8];
  std::uint64_t object_bytes;
  std::uint32_t url_bytes;
  std::uint32_t identity_bytes;
  std::uint32_t text_crc;
  std::uint32_t check;  // of all earlier bytes
};
static_assert(sizeof(FixedHeader) == 32);

template <class Checked>
std::uint32_t check_of(const Checked& bytes) noexcept {
  return crc32c(reinterpret_cast<const std::uint8_t*>(&bytes), offsetof(Checked, check));
}

std::uint32_t crc_of(const std::string& text) noexcept {
  return crc32c(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

}  // namespace

std::vector<std::uint8_t> CacheHeader::encode() const {
  const std::string text = url + identity;
  const std::size_t bytes = sizeof(FixedHeader) + text.size();
  if (bytes > kMaxBytes) return {};
  FixedHeader fixed{{},
                    object_bytes,
                    static_cast<std::uint32_t>(url.size()),
                    static_cast<std::uint32_t>(identity.size()),
                    crc_of(text),
                    0};
  std::memcpy(fixed.magic, kMagic, sizeof kMagic);
  fixed.check = check_of(fixed);
  std::vector<std::uint8_t> out(bytes);
  std::memcpy(out.data(), &fixed, sizeof fixed);
  std::memcpy(out.data() + sizeof fixed, text.data(), text.size());
  return out;
}

std::optional<CacheHeader> CacheHeader::decode(std::span<const std::uint8_t> bytes) {
  FixedHeader fixed;
  if (bytes.size() < sizeof fixed) return {};
  std::memcpy(&fixed, bytes.data(), sizeof fixed);
  if (std::memcmp(fixed.magic, kMagic, sizeof kMagic) != 0 || fixed.check != check_of(fixed) ||
      fixed.url_bytes > kMaxBytes || fixed.identity_bytes > kMaxBytes) {
    return {};
  }
  const std::size_t text_bytes = std::size_t{fixed.url_bytes} + fixed.identity_bytes;
  if (text_bytes > bytes.size() - sizeof fixed) return {};
  const std::string text(reinterpret_cast<const char*>(bytes.data()) + sizeof fixed, text_bytes);
  if (crc_of(text) != fixed.text_crc) return {};
  return CacheHeader{text.substr(0, fixed.url_bytes), text.substr(fixed.url_bytes),
                     fixed.object_bytes};
}

std::vector<std::uint8_t> encode_lines(std::span<const CacheLine> lines) {
  std::vector<std::uint8_t> out(lines.size_bytes());
  std::uint8_t* at = out.data();
  for (CacheLine each : lines) {
    each.check = check_of(each);
    std::memcpy(at, &each, sizeof each);
    at += sizeof each;
  }
  return out;
}

std::size_t decode_lines(std::span<const std::uint8_t> bytes, std::vector<CacheLine>& out) {
  std::size_t at = 0;
  while (bytes.size() - at >= sizeof(CacheLine)) {
    CacheLine line;
    std::memcpy(&line, bytes.data() + at, sizeof line);
    if (line.check == check_of(line)) {
      out.push_back(line);
      at += sizeof line;
    } else {
      ++at;  // a piece of a line, after which other processes have written whole lines
    }
  }
  return at;
}

std::uint32_t page_checksum(std::uint64_t page, const std::uint8_t* bytes,
                            std::size_t count) noexcept {
  // The checksum depends on the page's place, so exchanged pages are noticed.
  return std::rotl(crc32c(bytes, count), static_cast<int>(2 * (page % kCacheBlockPages)));
}

}  // namespace tfrfast
