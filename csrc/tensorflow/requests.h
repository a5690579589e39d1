// Finds the rows of the batches that a call is asked for, in any order: file order, a sequence, or
// a Loader's plan. Requests the next batches of a plan from a remote storage before their turn.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/load/remote_ahead.h"
#include "core/order/sequence.h"
#include "tensorflow/c_api.h"
#include "tensorflow/file_order.h"
#include "tensorflow/orders.h"
#include "tensorflow/reading.h"
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

// The batches of one call.
struct Request {
  std::int64_t count = 0;
  bool is_full = false;  // a batch that lacks a row fails
  // Finds the rows of batch `number`. Throws Error.
  std::function<BatchRows(std::int64_t number)> rows;
};

// A kernel's state: open sources, decoded orders, and the places of iterations. The announcements
// of the iterations end with the kernel. Safe from many threads.
class Requests {
 public:
  Requests() = default;
  ~Requests();
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  // `order` is an encoded Sequence or Plan, or "" for file order. These numbers say which batches:
  //   of a sequence: the order's key, files (a first one and a stride), the edition of the source,
  //   the first step, the end
  //   of a plan: a key (0: the plan's own order), the first epoch, the number of steps, the step
  //   in file order: a group of TfrfastWalk's batches, whose errors are `errors`
  // The inputs must outlive the result. Throws Error(invalid).
  Request find(std::string_view source, std::string_view order, std::span<const std::int64_t> place,
               std::span<const TString> errors, bool with_draws = false);

  // For an iteration that begins: checks whether the files have changed. Returns its share of a
  // sequence, and the edition of the source. Throws Error.
  std::pair<std::shared_ptr<const Share>, std::int64_t> begin_share(std::string_view source,
                                                                    std::string_view order,
                                                                    Files files);
  // The source of an encoding. With `begins`, checks whether the files have changed.
  std::shared_ptr<const Source> open(std::string_view source, bool begins = false);

 private:
  Request of_sequence(std::string_view source, std::string_view order,
                      std::span<const std::int64_t> place);
  Request of_plan(std::string_view source, std::string_view order,
                  std::span<const std::int64_t> place, bool with_draws);
  Request of_walk(std::string_view source, std::span<const std::int64_t> batches,
                  std::span<const TString> errors);
  std::shared_ptr<const Share> share_of(const std::shared_ptr<const Source>& source, Files files,
                                        const std::shared_ptr<const Sequence>& sequence);

  // Keeps a source of an iteration, so that the next call finds it open.
  std::shared_ptr<const Source> hold(std::shared_ptr<const Source> source);

  std::mutex mutex_;
  std::vector<std::shared_ptr<const Source>> held_;  // last used first
  StepsAhead ahead_;
  LastMade<Share> shares_;
  LastDecoded<Sequence> sequences_;
  LastMade<LoadingPlan> plans_;
};

}  // namespace tfrfast::tensorflow
