// What has been announced to storages, and is still to be read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace tfrfast {

// Who will read what is announced.
enum class Reads : std::uint8_t {
  another,   // one who reads it once more than all others do
  the_same,  // one who reads it together with others who announce it so: once in all
};

// Ranges of a file that were announced. Whoever drops it withdraws those that were not read since,
// unless somebody else has announced them, too. The file must outlive it. Safe from many threads,
// and may be dropped in a forked child.
class Announcement {
 public:
  Announcement() = default;
  virtual ~Announcement() = default;
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;

  // They are needed now, before all else. Never fails.
  virtual void hurry() noexcept = 0;
};

// Of several files.
using Announcements = std::vector<std::unique_ptr<Announcement>>;

// The announcements of those who go along a course: bytes of a file, records, or batches. For one
// thread.
class AnnouncedAhead {
 public:
  // What begins here has not been announced.
  std::uint64_t end() const noexcept { return end_; }
  void add(std::uint64_t end, Announcements announcements) {
    if (end > end_) end_ = end;
    if (!announcements.empty()) by_end_.emplace(end, std::move(announcements));
  }
  // What lies before `place` is over, read or not.
  void come_to(std::uint64_t place) { by_end_.erase(by_end_.begin(), by_end_.upper_bound(place)); }

 private:
  std::multimap<std::uint64_t, Announcements> by_end_;
  std::uint64_t end_ = 0;
};

}  // namespace tfrfast
