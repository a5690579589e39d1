#include "core/deflate/member_finder.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tfrfast {
namespace {

constexpr std::size_t kPieceBytes = 256 << 10;
// So many bytes of the file may be inflated in vain, however small it is.
constexpr std::uint64_t kLeastVainBytes = 64 << 20;
// What trying one member costs: reading a piece of it.
constexpr std::uint64_t kProbeBytes = 64 << 10;
// Most data make fewer bytes of one; what makes more costs as much as what it makes.
constexpr std::uint64_t kUsualRatio = 16;

constexpr std::uint8_t kFirstBytes[] = {0x1f, 0x8b, 8};  // then come flags, of which 3 must be 0
constexpr std::uint8_t kForbiddenFlags = 0xe0;
constexpr std::size_t kSeenBytes = sizeof kFirstBytes + 1;

// The first place in `bytes` where a member may begin; the end if there is none.
const std::uint8_t* search(const std::uint8_t* bytes, const std::uint8_t* end) {
  while (static_cast<std::size_t>(end - bytes) >= kSeenBytes) {
    const void* const first =
        std::memchr(bytes, kFirstBytes[0], static_cast<std::size_t>(end - bytes) - kSeenBytes + 1);
    if (first == nullptr) break;
    bytes = static_cast<const std::uint8_t*>(first);
    if (std::memcmp(bytes, kFirstBytes, sizeof kFirstBytes) == 0 &&
        (bytes[sizeof kFirstBytes] & kForbiddenFlags) == 0) {
      return bytes;
    }
    ++bytes;
  }
  return end;
}

}  // namespace

MemberFinder::MemberFinder(std::shared_ptr<const StoredFile> file, std::function<void()> pulse)
    : file_(std::move(file)),
      pulse_(std::move(pulse)),
      probe_(file_, Compression::gzip, StreamInflater::Mode::survey),
      out_(kPieceBytes),
      vain_bytes_left_(file_->data_bytes() + kLeastVainBytes) {}

std::optional<std::uint64_t> MemberFinder::find(std::uint64_t from) {
  PooledBuffer piece(kPieceBytes);
  while (from < file_->bytes() && file_->bytes() - from >= kSeenBytes) {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, file_->bytes() - from));
    pulse_();
    file_->read(from, piece.data(), count);
    const std::uint8_t* const end = piece.data() + count;
    for (const std::uint8_t* at = search(piece.data(), end); at != end; at = search(at + 1, end)) {
      const std::uint64_t member = from + static_cast<std::uint64_t>(at - piece.data());
      if (inflates(member)) return member;
      if (vain_bytes_left_ == 0) return {};
    }
    from += count - kSeenBytes + 1;
    const std::uint64_t data = file_->next_data(from);
    if (data - from >= kSeenBytes) from = data - kSeenBytes + 1;
  }
  return {};
}

bool MemberFinder::inflates(std::uint64_t member) {
  std::uint64_t made = 0;
  std::uint64_t cost = kProbeBytes;
  probe_.begin(member);
  while (probe_.end() == StreamEnd::none && probe_.verified_members() == 0 &&
         cost < vain_bytes_left_) {
    pulse_();
    made += probe_.read({out_.data(), kPieceBytes});
    cost = kProbeBytes + std::max(probe_.file_offset() - member, made / kUsualRatio);
  }
  if (probe_.verified_members() > 0) return true;
  vain_bytes_left_ -= std::min(vain_bytes_left_, cost);
  return false;
}

}  // namespace tfrfast
