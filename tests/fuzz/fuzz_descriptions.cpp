// Decodes any bytes as a plan, a feature schema, a sequence, a source and steps. The decoder
// refuses the bytes with an Error with a message, or accepts them. Accepted descriptions encode to
// the same bytes, and give existing records.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/encoding.h"
#include "core/example/schema.h"
#include "core/order/plan.h"
#include "core/order/sequence.h"
#include "core/read/source_spec.h"
#include "core/steps/step_spec.h"
#include "core/storage/storage_options.h"
#include "may_throw.h"

using namespace tfrfast;

namespace {

constexpr std::int64_t kMaxRows = 1000;

void check_plan(std::string_view bytes) {
  const Plan plan = Plan::decode(bytes);
  require(plan.encode() == bytes);
  require(!plan.order_description().empty());
  for (const std::int64_t step : {std::int64_t{0}, plan.steps() - 1}) {
    if (plan.row_count(step) > kMaxRows) continue;
    const auto epoch = plan.of_epoch(bytes.size());
    const std::size_t rows = plan.row_count(*epoch, step);
    require(rows <= plan.row_count(step));
    std::vector<std::int64_t> records(rows);
    require(plan.rows(*epoch, step, records.data(), nullptr) == rows);
    for (const std::int64_t record : records)
      require(record >= 0 && record < plan.order().records());
  }
}

void check_sequence(std::string_view bytes) {
  const Sequence sequence = Sequence::decode(bytes);
  require(sequence.encode() == bytes);
  if (sequence.batch_rows > kMaxRows) return;
  const std::int64_t batches = sequence.batch_count();
  for (const std::int64_t step : {std::int64_t{0}, batches / 2, batches - 1}) {
    const std::vector<std::int64_t> numbers = sequence.batch(bytes.size(), step);
    require((step < batches && step >= 0) == !numbers.empty());
    for (const std::int64_t record : numbers) require(sequence.records.has(record));
  }
}

void check_features(std::string_view bytes) {
  const FeatureSchema schema = FeatureSchema::decode(bytes);
  require(schema.encode() == bytes);
}

void check_source(std::string_view bytes) {
  require(SourceSpec::decode(bytes).encode() == bytes);
}

void check_steps(std::string_view bytes) {
  require(StepSpec::decode(bytes).encode() == bytes);
}

void check_storage(std::string_view bytes) {
  require(StorageOptions::decode(bytes).encode() == bytes);
}

// Adds the head that the bytes must have, because few inputs would have the right head by chance.
std::string with_head(const EncodedKind& kind, std::string_view body) {
  Encoder encoder(kind);
  encoder.encoded(body);
  return encoder.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  may_throw([&] { check_plan(body); });
  may_throw([&] { check_plan(with_head(Plan::kEncoding, body)); });
  may_throw([&] { check_sequence(body); });
  may_throw([&] { check_sequence(with_head(Sequence::kEncoding, body)); });
  may_throw([&] { check_features(body); });
  may_throw([&] { check_features(with_head(FeatureSchema::kEncoding, body)); });
  may_throw([&] { check_source(body); });
  may_throw([&] { check_source(with_head(SourceSpec::kEncoding, body)); });
  may_throw([&] { check_steps(body); });
  may_throw([&] { check_steps(with_head(StepSpec::kEncoding, body)); });
  may_throw([&] { check_storage(body); });
  may_throw([&] { check_storage(with_head(StorageOptions::kEncoding, body)); });
  return 0;
}
