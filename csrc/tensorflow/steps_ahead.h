// Requests the batches of a shuffle from a remote storage before their turn comes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/load/remote_ahead.h"
#include "tensorflow/source.h"

namespace tfrfast::tensorflow {

// The steps that an iteration reads of a planned source. An order is a function, so any kernel
// knows the next steps.
struct Course {
  std::shared_ptr<const Source> source;
  std::string name;  // courses with the same source and name are equal
  std::int64_t steps = 0;
  std::function<std::vector<std::int64_t>(std::int64_t step)> records;  // may throw Error
  std::uint64_t together_bytes = kTogetherBytes;  // of steps that share requests
};

// An iteration's place in a course: the announced steps, and which of them have been taken. Steps
// are taken nearly in order, since several calls run at once. A holder of the object is at the
// place. When nothing holds the place any more, unread announcements are withdrawn. Safe from many
// threads.
class StepsAhead {
 public:
  StepsAhead(Course course, std::int64_t first);

  // Takes a step, after announcing the step and the next steps. False if the step belongs to
  // another place or course, or was taken before.
  bool take(const Course& course, std::int64_t step);

 private:
  bool is_taken(std::int64_t step) const;
  bool may_be_here(std::int64_t step) const;
  void begin_earlier(std::int64_t step);
  void announce(std::int64_t begin, std::int64_t end);
  void announce_after(std::int64_t step);
  void pass_over(std::int64_t step);
  void end_first_step();

  const Course course_;
  std::mutex mutex_;
  RemoteAhead distance_;
  std::int64_t slack_ = 0;     // by how many steps calls may be out of order
  std::int64_t begin_ = 0;     // the first step that is not over
  std::int64_t lowest_ = 0;    // the first step of all
  std::deque<bool> is_taken_;  // of each announced step from begin_ on
  bool is_in_gap_ = false;     // the step before begin_ was not taken
  ReadAhead read_ahead_;
  AnnouncedAhead announced_;  // by step
};

// The places in the courses of one source. Safe from many threads.
class Places {
 public:
  // The place that has taken this step, or a new place.
  std::shared_ptr<StepsAhead> take(const Course& course, std::int64_t step);

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<StepsAhead>> places_;
};

// A kernel's hold on the places of its calls: the kernel's iterations end with the kernel. Safe
// from many threads.
class PlaceHolder {
 public:
  // Announces a step that will be read now, and the next steps. False if the step does not exist,
  // or the source has no remote shard. Throws the exceptions of making and reading the course.
  bool come_to(const std::shared_ptr<const Source>& source, std::int64_t step,
               const std::function<Course()>& course);

 private:
  struct Held {
    std::shared_ptr<StepsAhead> place;
    std::uint64_t last_call = 0;
  };
  std::mutex mutex_;
  std::uint64_t calls_ = 0;
  std::vector<Held> held_;  // last used first
};

}  // namespace tfrfast::tensorflow
