// Counts the announced bytes of a remote file, like a storage. For tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "core/storage/stored_file.h"

namespace tfrfast::testing {

// How often each byte is awaited: announced, held, and not read since the announcement. Safe from
// many threads.
class AnnouncedBytes {
 public:
  void reset(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_.assign(bytes, {});
    read_unannounced_ = 0;
  }

  std::unique_ptr<Announcement> announce(std::span<const FileRange> ranges, Reads reads) {
    const std::lock_guard lock(mutex_);
    auto held = std::make_unique<Held>(*this);
    for (const FileRange& each : ranges) {
      Byte* const begin = bytes_.data() + each.offset;
      Byte* const end = begin + each.bytes;
      const bool is_expected =
          reads != Reads::the_same ||
          std::any_of(begin, end, [](const Byte& byte) { return byte.awaited == 0; });
      std::vector<int> asked(each.bytes);
      int* next = asked.data();
      for (Byte* byte = begin; byte != end; ++byte) {
        if (byte->awaited == 0) ++byte->asked, byte->holds = 0;
        byte->awaited += is_expected;
        ++byte->holds;
        *next++ = byte->asked;
      }
      held->ranges.push_back({begin, std::move(asked)});
    }
    return held;
  }
  void read(std::uint64_t offset, std::size_t count) {
    const std::lock_guard lock(mutex_);
    for (Byte* byte = bytes_.data() + offset; count > 0; ++byte, --count) {
      read_unannounced_ += byte->awaited == 0;
      byte->awaited -= byte->awaited > 0;
    }
  }

  std::int64_t awaited() const { return sum(&Byte::awaited, 1); }
  // Sums over every n-th byte only.
  std::int64_t awaited(std::size_t every) const { return sum(&Byte::awaited, every); }
  std::int64_t asked() const { return sum(&Byte::asked, 1); }
  int most_asked() const {
    const std::lock_guard lock(mutex_);
    int most = 0;
    for (const Byte& each : bytes_) most = std::max(most, each.asked);
    return most;
  }
  std::uint64_t read_unannounced() const {
    const std::lock_guard lock(mutex_);
    return read_unannounced_;
  }

 private:
  struct Byte {
    int awaited = 0;
    int holds = 0;
    int asked = 0;  // announcements in all
  };

  struct Held final : Announcement {
    explicit Held(AnnouncedBytes& from) : of(from) {}
    ~Held() override {
      const std::lock_guard lock(of.mutex_);
      for (const auto& [begin, asked] : ranges) {
        Byte* byte = begin;
        for (const int time : asked) {
          if (byte->asked == time && byte->awaited > 0 && --byte->holds == 0) byte->awaited = 0;
          ++byte;
        }
      }
    }
    void hurry() noexcept override {}
    AnnouncedBytes& of;
    // and the number of each byte's announcement
    std::vector<std::pair<Byte*, std::vector<int>>> ranges;
  };

  std::int64_t sum(int Byte::*member, std::size_t every) const {
    const std::lock_guard lock(mutex_);
    std::int64_t sum = 0;
    for (std::size_t at = 0; at < bytes_.size(); at += every) sum += bytes_[at].*member;
    return sum;
  }

  mutable std::mutex mutex_;
  std::vector<Byte> bytes_;
  std::uint64_t read_unannounced_ = 0;
};

}  // namespace tfrfast::testing
