#include "tensorflow/requests.h"

#include <algorithm>
#include <utility>

namespace tfrfast::tensorflow {
namespace {

[[noreturn]] void refuse(const char* numbers) {
  throw Error(ErrorKind::invalid, std::string("A dataset's steps are given by ") + numbers);
}

BatchRows rows_of(std::shared_ptr<const Source> source, std::vector<std::int64_t> records) {
  BatchRows batch;
  batch.source = std::move(source);
  batch.records = std::move(records);
  const Reader* const frames = batch.source->records()->reader();
  if (frames != nullptr) {
    batch.rows.resize(batch.records.size());
    frames->locate(batch.records, batch.rows.data());
  }
  return batch;
}

}  // namespace

Request Requests::find(std::string_view source, std::string_view order,
                       std::span<const std::int64_t> place, std::span<const TString> errors,
                       bool with_draws) {
  if (order.empty()) return of_walk(source, place, errors);
  if (order.starts_with(Plan::kEncoding.tag)) return of_plan(source, order, place, with_draws);
  return of_sequence(source, order, place);
}

std::shared_ptr<const Share> Requests::share(std::string_view text, Files files, bool look) {
  const std::shared_ptr<const Source> source =
      sources_.hold(look ? begin_source(text) : open_source(text));
  return shares_.get(
      [&](const Share& last) { return last.source() == source && last.files() == files; },
      [&] { return Share(source, files); });
}

Request Requests::of_sequence(std::string_view source, std::string_view order,
                              std::span<const std::int64_t> place) {
  const auto sequence = sequences_.get(order);
  if (place.size() != 5 || place[3] < 0 || place[4] <= place[3]) {
    refuse("a key, files as a first one and a stride, the first step, and a larger end.");
  }
  const auto seed = static_cast<std::uint64_t>(place[0]);
  const Files files = files_of(place.subspan(1, 2));
  const std::int64_t begin = place[3];
  return {
      place[4] - begin, sequence->drop_remainder, [=, this](std::int64_t number) {
        const auto share = this->share(source, files);
        ahead_.come_to(share->source(), begin + number, [&] {
          std::string name(head_of(order));
          for (const auto each : {static_cast<std::int64_t>(seed), files.first, files.stride}) {
            name.append(" ").append(std::to_string(each));
          }
          return Course{
              share->source(), std::move(name), share->batch_count(*sequence),
              [=](std::int64_t step) { return share->records_of_batch(*sequence, seed, step); }};
        });
        return rows_of(share->source(), share->records_of_batch(*sequence, seed, begin + number));
      }};
}

Request Requests::of_plan(std::string_view text, std::string_view order,
                          std::span<const std::int64_t> place, bool with_draws) {
  if (place.size() != 4) refuse("a key, the first epoch, the number of steps, and a step.");
  const auto plan =
      plans_.get([&](const LoadingPlan& last) { return last.is_of(order, place[1], place[0]); },
                 [&] { return LoadingPlan(order, place[1], place[0]); });
  const std::int64_t steps = place[2];
  const std::int64_t step = place[3];
  LoadingPlan::StepRows rows = plan->rows(step, with_draws);
  auto shared = std::make_shared<LoadingPlan::StepRows>(std::move(rows));
  return {1, false, [=, this](std::int64_t) {
            const std::shared_ptr<const Source> source = share(text, {})->source();
            ahead_.come_to(source, step, [&] {
              return Course{source, plan->name() + " " + std::to_string(steps), steps,
                            [plan](std::int64_t each) { return plan->rows(each).records; }};
            });
            BatchRows batch = rows_of(source, std::move(shared->records));
            batch.valid = std::move(shared->valid);
            batch.draws = std::move(shared->draws);
            batch.epoch = shared->epoch;
            batch.packed = std::move(shared->packed);
            batch.files.push_back(plan);
            return batch;
          }};
}

std::shared_ptr<const Source> Requests::walked(std::string_view text, bool begins) {
  return sources_.hold(begins ? begin_source(text) : open_source(text));
}

Request Requests::of_walk(std::string_view source, std::span<const std::int64_t> batches,
                          std::span<const TString> errors) {
  if (errors.empty() || batches.size() % errors.size() != 0) refuse_place();
  const std::size_t width = batches.size() / errors.size();
  Request request;
  for (std::size_t at = 0; at < batches.size(); at += width) request.count += batches[at] >= 0;
  if (request.count > 0) request.is_full = WalkedBatch(batches.first(width)).wanted.is_full;
  request.rows = [=, this](std::int64_t number) {
    const auto at = static_cast<std::size_t>(number);
    WalkedBatch walked(batches.subspan(at * width, width));
    BatchRows batch;
    if (walked.rows > 0) batch = find_rows(this->walked(source), walked);
    if (!errors[at].read().empty()) batch.error = errors[at].read();
    return batch;
  };
  return request;
}

}  // namespace tfrfast::tensorflow
