#include "tensorflow/requests.h"

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

Requests::BegunShare Requests::begin_share(std::string_view text, Files files) {
  const Begun begun = begin_source(text);
  return {share_of(sources_.hold(begun.source), files), begun.edition};
}

std::shared_ptr<const Share> Requests::share_of(const std::shared_ptr<const Source>& source,
                                                Files files) {
  return shares_.get(
      [&](const Share& last) { return last.source() == source && last.files() == files; },
      [&] { return Share(source, files); });
}

Request Requests::of_sequence(std::string_view source, std::string_view order,
                              std::span<const std::int64_t> place) {
  const auto sequence = sequences_.get(order);
  if (place.size() != 6 || place[3] < 0 || place[4] < 0 || place[5] <= place[4]) {
    refuse(
        "a key, files as a first one and a stride, the edition, the first step, and a larger end.");
  }
  const auto seed = static_cast<std::uint64_t>(place[0]);
  const Files files = files_of(place.subspan(1, 2));
  const std::int64_t edition = place[3];
  const std::int64_t begin = place[4];
  return {
      place[5] - begin, sequence->drop_remainder, [=, this](std::int64_t number) {
        const auto share = share_of(sources_.hold(open_source(source, edition)), files);
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
  return {1, false, [=, this](std::int64_t) {
            LoadingPlan::StepRows rows = plan->rows(step, with_draws);
            const std::shared_ptr<const Source> source = open(text);
            ahead_.come_to(source, step, [&] {
              return Course{source, plan->name() + " " + std::to_string(steps), steps,
                            [plan](std::int64_t each) { return plan->rows(each).records; }};
            });
            BatchRows batch = rows_of(source, std::move(rows.records));
            batch.valid = std::move(rows.valid);
            batch.draws = std::move(rows.draws);
            batch.epoch = rows.epoch;
            batch.packed = std::move(rows.packed);
            batch.files.push_back(plan);
            return batch;
          }};
}

std::shared_ptr<const Source> Requests::open(std::string_view text, bool begins) {
  return sources_.hold(begins ? begin_source(text).source : open_source(text));
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
    if (walked.rows > 0) batch = find_rows(open(source), walked);
    if (!errors[at].read().empty()) batch.error = errors[at].read();
    return batch;
  };
  return request;
}

}  // namespace tfrfast::tensorflow
