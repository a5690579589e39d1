// Announcements to storages: ranges that will be read soon.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace tfrfast {

// The kind of read that an announcement announces.
enum class Reads : std::uint8_t {
  another,   // one more read of the ranges
  in_order,  // one more read of a single range, of every byte
  the_same,  // the same read as other announcements of this kind: the ranges are read once in all
};

// Ranges of a file that were announced. Destroying the object withdraws the ranges that were not
// read since, unless another announcement holds them. The file must outlive the object. Safe from
// many threads. May be destroyed in a forked child.
class Announcement {
 public:
  Announcement() = default;
  virtual ~Announcement() = default;
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;

  // The ranges are needed now, before all others. Never fails.
  virtual void hurry() noexcept = 0;
};

// Announcements in several files.
using Announcements = std::vector<std::unique_ptr<Announcement>>;

// The announcements of a reader that moves along a course of bytes, records or batches. One thread
// at a time.
class AnnouncedAhead {
 public:
  // The first place that was not announced.
  std::uint64_t end() const noexcept { return end_; }
  void add(std::uint64_t end, Announcements announcements) {
    if (end > end_) end_ = end;
    if (!announcements.empty()) by_end_.emplace(end, std::move(announcements));
  }
  // Everything before `place` is over, read or not.
  void come_to(std::uint64_t place) { by_end_.erase(by_end_.begin(), by_end_.upper_bound(place)); }

 private:
  std::multimap<std::uint64_t, Announcements> by_end_;
  std::uint64_t end_ = 0;
};

}  // namespace tfrfast
