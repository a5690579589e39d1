// Walks once through a compressed shard's uncompressed stream, and collects seek points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/codec/inflated_file.h"
#include "core/codec/member_finder.h"
#include "core/codec/seek_points.h"
#include "core/codec/stream_inflater.h"
#include "core/codec/window_deflater.h"
#include "core/shard/walker.h"

namespace tfrfast {

// Walking forward inflates every byte once, and drops passed spans. Going back inflates dropped
// spans again. One thread at a time.
class InflatingWalker final : public ShardWalker {
 public:
  // A read of inflated() finds the `kept` spans inflated. With AtDamage::stop, resume() always
  // fails. `options` may name a cache for the Mirror of inflated().
  static std::unique_ptr<InflatingWalker> over(std::shared_ptr<const StoredFile> file,
                                               Compression compression, WalkedSpans kept,
                                               AtDamage at_damage, LookAhead ahead = LookAhead(),
                                               const StorageOptions& options = {});

  const std::shared_ptr<const InflatedFile>& inflated() const noexcept { return inflated_; }
  const std::shared_ptr<SeekPoints>& seek_points() const noexcept { return points_; }

  ShardWindow window(std::uint64_t offset, std::size_t wanted) override;
  bool reach(std::uint64_t bytes) override;
  std::uint64_t max_bytes() const override;
  std::uint64_t file_bytes_before(std::uint64_t offset) const override;
  Ending ending() const override;
  bool resume() override;

 private:
  InflatingWalker(std::shared_ptr<const InflatedFile> inflated, std::shared_ptr<SeekPoints> points,
                  WalkedSpans kept, AtDamage at_damage, LookAhead ahead);
  bool inflate_next();
  std::shared_ptr<InflatedSpan> inflate_span();
  void begin_next();
  std::span<const std::uint8_t> inflate_window(std::span<std::uint8_t, kDeflateWindowBytes> out);
  void find_next_member(InflatedSpan& span);

  const std::shared_ptr<const InflatedFile> inflated_;
  const std::shared_ptr<SeekPoints> points_;
  const WalkedSpans kept_;
  const AtDamage at_damage_;
  LookAhead ahead_;
  StreamInflater inflater_;
  std::optional<MemberFinder> finder_;        // made at the first damage
  std::optional<std::uint64_t> next_member_;  // place in the file, after damage
  WindowDeflater window_deflater_;
  std::uint64_t pulsed_at_ = 0;            // bytes of the file plus bytes of the stream
  std::unique_ptr<ShardWalker> again_;     // walks through dropped spans
  SharedSpan current_;                     // the last span, preceded by the end of the span before
  Span next_;                              // the begin of the next span
  StreamInflater::Mark mark_;              // the same for the inflater
  std::vector<std::uint8_t> next_window_;  // the window before `next_`, deflated
};

}  // namespace tfrfast
