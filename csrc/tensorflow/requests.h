// Finds the rows of the batches that a call is asked for, in any order: file order, a sequence, or
// a Loader's plan.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "core/order/sequence.h"
#include "tensorflow/file_order.h"
#include "tensorflow/last_made.h"
#include "tensorflow/loading_plan.h"
#include "tensorflow/reading.h"
#include "tensorflow/registry.h"
#include "tensorflow/share.h"
#include "tensorflow/steps_ahead.h"
#include "tensorflow/tstring.h"

namespace tfrfast::tensorflow {

// The batches of one call.
struct Request {
  std::int64_t count = 0;
  bool is_full = false;  // a batch that lacks a row fails
  // Finds the rows of batch `number`. Throws Error.
  std::function<BatchRows(std::int64_t number)> rows;
};

// A kernel's state: open sources, decoded orders, and the places of iterations. Safe from many
// threads.
class Requests {
 public:
  // `order` is an encoded Sequence or Plan, or "" for file order. These numbers say which batches:
  //   of a sequence: the order's key, files (a first one and a stride), the edition of the source,
  //   the first step, the end
  //   of a plan: a key (0: the plan's own order), the first epoch, the number of steps, the step
  //   in file order: a group of TfrfastWalk's batches, whose errors are `errors`
  // The inputs must outlive the result. Throws Error(invalid).
  Request find(std::string_view source, std::string_view order, std::span<const std::int64_t> place,
               std::span<const TString> errors, bool with_draws = false);

  struct BegunShare {
    std::shared_ptr<const Share> share;
    std::int64_t edition = 0;
  };
  // For an iteration that begins: checks whether the files have changed. Throws Error.
  BegunShare begin_share(std::string_view source, Files files);
  std::shared_ptr<const Sequence> sequence(std::string_view encoded) {
    return sequences_.get(encoded);
  }
  // The source of an encoding. With `begins`, checks whether the files have changed.
  std::shared_ptr<const Source> open(std::string_view source, bool begins = false);

 private:
  Request of_sequence(std::string_view source, std::string_view order,
                      std::span<const std::int64_t> place);
  Request of_plan(std::string_view source, std::string_view order,
                  std::span<const std::int64_t> place, bool with_draws);
  Request of_walk(std::string_view source, std::span<const std::int64_t> batches,
                  std::span<const TString> errors);
  std::shared_ptr<const Share> share_of(const std::shared_ptr<const Source>& source, Files files);

  SourceHolder sources_;
  StepsAhead ahead_;
  LastMade<Share> shares_;
  LastDecoded<Sequence> sequences_;
  LastMade<LoadingPlan> plans_;
};

}  // namespace tfrfast::tensorflow
