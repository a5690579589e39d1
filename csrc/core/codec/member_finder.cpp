#include "core/codec/member_finder.h"

#include <algorithm>
#include <utility>

namespace tfrfast {
namespace {

constexpr std::size_t kPieceBytes = 256 << 10;
// Even in a tiny file, this many bytes may be inflated without result.
constexpr std::uint64_t kMinFruitlessBytes = 64 << 20;
// The cost of a trial: reading a piece of the member.
constexpr std::uint64_t kProbeBytes = 64 << 10;
// Most data inflate to less than 16 times their size. Beyond, a trial's output sets its cost.
constexpr std::uint64_t kUsualRatio = 16;

constexpr std::size_t kSeenBytes = 4;  // find_member() examines this many bytes

}  // namespace

MemberFinder::MemberFinder(std::shared_ptr<const StoredFile> file, Compression compression,
                           std::function<void()> pulse)
    : file_(std::move(file)),
      codec_(codec_of(compression)),
      pulse_(std::move(pulse)),
      probe_(file_, compression, Inflater::Kind::fastest, StreamInflater::Checks::members),
      out_(kPieceBytes),
      fruitless_bytes_left_(file_->data_bytes() + kMinFruitlessBytes) {}

std::optional<std::uint64_t> MemberFinder::find(std::uint64_t from) {
  PooledBuffer piece(kPieceBytes);
  while (from < file_->bytes() && file_->bytes() - from >= kSeenBytes) {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, file_->bytes() - from));
    pulse_();
    file_->read(from, piece.data(), count);
    const std::uint8_t* const end = piece.data() + count;
    for (const std::uint8_t* at = codec_.find_member(piece.data(), end); at != end;
         at = codec_.find_member(at + 1, end)) {
      const std::uint64_t member = from + static_cast<std::uint64_t>(at - piece.data());
      if (inflates(member)) return member;
      if (fruitless_bytes_left_ == 0) return {};
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
         cost < fruitless_bytes_left_) {
    pulse_();
    made += probe_.read({out_.data(), kPieceBytes});
    cost = kProbeBytes + std::max(probe_.file_offset() - member, made / kUsualRatio);
  }
  if (probe_.verified_members() > 0) return true;
  fruitless_bytes_left_ -= std::min(fruitless_bytes_left_, cost);
  return false;
}

}  // namespace tfrfast
