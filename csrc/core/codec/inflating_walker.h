// Walks a compressed shard's uncompressed stream once, collecting seek points on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/codec/deflater.h"
#include "core/codec/inflated_file.h"
#include "core/codec/member_finder.h"
#include "core/codec/seek_points.h"
#include "core/codec/stream_inflater.h"
#include "core/shard/walker.h"

namespace tfrfast {

// Walking forward inflates every byte once, and forgets what has been passed. Going back costs
// inflating it again. For one thread.
class InflatingWalker final : public ShardWalker {
 public:
  // With `keep_spans`, reads of inflated() that follow closely find their spans inflated. With
  // AtDamage::stop, it never resumes.
  static std::unique_ptr<InflatingWalker> over(std::shared_ptr<const StoredFile> file,
                                               Compression compression, bool keep_spans,
                                               AtDamage at_damage, LookAhead ahead = LookAhead());

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
                  bool keep_spans, AtDamage at_damage, LookAhead ahead);
  bool inflate_next();
  SharedSpan inflate_span();
  void begin_next();
  void find_next_member(InflatedSpan& span);

  const std::shared_ptr<const InflatedFile> inflated_;
  const std::shared_ptr<SeekPoints> points_;
  const bool keep_spans_;
  const AtDamage at_damage_;
  LookAhead ahead_;
  StreamInflater inflater_;
  std::optional<MemberFinder> finder_;        // from the first damage on
  std::optional<std::uint64_t> next_member_;  // after damage: where it begins in the file
  Deflater window_deflater_;
  std::uint64_t pulsed_at_ = 0;            // bytes of the file and of the stream, together
  std::unique_ptr<ShardWalker> again_;     // for what has been forgotten
  SharedSpan current_;                     // the last one inflated, after a piece of the one before
  Span next_;                              // the one to come: where it begins
  std::vector<std::uint8_t> next_window_;  // and the window before it, deflated
};

}  // namespace tfrfast
