#include "tensorflow/decoding.h"

namespace tfrfast::tensorflow {

std::shared_ptr<const LoadingPlan> DecodingKernel::plan(std::string_view encoded,
                                                        std::int64_t epoch, std::int64_t key) {
  return plans_.get([=](const LoadingPlan& last) { return last.is_of(encoded, epoch, key); },
                    [=] { return LoadingPlan(encoded, epoch, key); });
}

// A worker that throws is not put back, because its work is half done.
LoadedBatch DecodingKernel::load(const std::shared_ptr<const Source>& source,
                                 const std::shared_ptr<const FeatureSchema>& features,
                                 std::span<const std::int64_t> records, const bool* valid) {
  static const std::atomic<bool> never{false};
  const std::vector<std::shared_ptr<const void>> what = {source, features};
  std::unique_ptr<BatchWork> work =
      works_.take(what, [&] { return std::make_unique<BatchWork>(source->reader(), features); });
  LoadedBatch batch = work->load(records, valid, never);
  works_.put_back(what, std::move(work));
  return batch;
}

std::vector<Column> DecodingKernel::decode(const std::shared_ptr<const FeatureSchema>& features,
                                           std::span<const WireBytes> wires,
                                           std::span<const std::int64_t> record_numbers) {
  const std::vector<std::shared_ptr<const void>> what = {features};
  std::unique_ptr<BatchDecoder> decoder =
      decoders_.take(what, [&] { return std::make_unique<BatchDecoder>(features); });
  decoder->begin(wires.size());
  decoder->decode(wires, record_numbers);
  std::vector<Column> columns = decoder->finish();
  decoders_.put_back(what, std::move(decoder));
  return columns;
}

}  // namespace tfrfast::tensorflow
