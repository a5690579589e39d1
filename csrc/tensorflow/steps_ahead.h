// Requests the batches of a plan from a remote storage before their turn comes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/load/remote_ahead.h"
#include "tensorflow/source.h"

namespace tfrfast::tensorflow {

// The steps that an iteration reads of a planned source. An order is a function, so a kernel knows
// the next steps.
struct Course {
  std::shared_ptr<const Source> source;
  std::string name;  // courses with the same source and name are equal
  std::int64_t steps = 0;
  std::function<std::vector<std::int64_t>(std::int64_t step)> records;  // may throw Error
  std::uint64_t together_bytes = kTogetherBytes;  // of steps that share requests
};

// The places of a kernel's iterations in their courses. Unread announcements are withdrawn with the
// kernel. Safe from many threads.
class StepsAhead {
 public:
  // Announces a step of `source` that will be read now, and the next steps. False if the step does
  // not exist, or the source has no remote shard. Throws the exceptions of making and reading the
  // course.
  bool come_to(const std::shared_ptr<const Source>& source, std::int64_t step,
               const std::function<Course()>& course);

 private:
  // An iteration's place: the announced steps, and which of them have been taken. Steps are taken
  // nearly in order, since several calls run at once.
  class IterationPlace {
   public:
    IterationPlace(Course course, std::int64_t first);
    // Takes a step. False if the step belongs to another place, or was taken before.
    bool take(const Course& course, std::int64_t step);

    std::uint64_t last_call = 0;

   private:
    void announce(std::int64_t begin, std::int64_t end);
    void announce_after(std::int64_t step);
    void end_first_step();

    const Course course_;
    RemoteAhead distance_;
    std::int64_t slack_ = 0;      // by how many steps calls may be out of order
    std::int64_t begin_ = 0;      // the first step that is not over
    std::int64_t first_ = 0;      // the step of the first call
    std::int64_t announced_ = 0;  // the first step from first_ on that is not announced
    std::deque<bool> is_taken_;   // of each step from begin_ on
    bool is_in_gap_ = true;       // the step before begin_ was not taken
    ReadAhead read_ahead_;
    AnnouncedAhead announcements_;  // by step
  };

  std::mutex mutex_;
  std::uint64_t calls_ = 0;
  std::list<IterationPlace> places_;
};

}  // namespace tfrfast::tensorflow
