// Decodes any bytes as a plan, a feature schema, a sequence, a source and steps. The decoder
// refuses the bytes with an Error with a message, or accepts them. Accepted descriptions encode to
// the same bytes, and give existing records. Any bytes are lengths, too: packs of them hold each
// token once, and the process finds their order again by its encoding.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/encoding.h"
#include "core/example/schema.h"
#include "core/order/packed_order.h"
#include "core/order/plan.h"
#include "core/order/sequence.h"
#include "core/read/source_spec.h"
#include "core/steps/step_spec.h"
#include "core/storage/storage_options.h"
#include "may_throw.h"

using namespace tfrfast;

namespace {

constexpr std::int64_t kMaxRows = 1000;
constexpr std::size_t kMaxLengths = 50;

void check_plan(std::string_view bytes) {
  const Plan plan = Plan::decode(bytes);
  require(plan.encode() == bytes);
  require(!plan.order_description().empty());
  for (const std::int64_t step : {std::int64_t{0}, plan.steps() - 1}) {
    if (plan.row_count(step) > kMaxRows) continue;
    const auto epoch = plan.of_epoch(bytes.size());
    PlannedBatch batch;
    plan.batch(*epoch, step, batch);
    require(batch.records.size() <= plan.row_count(step));
    for (const std::int64_t record : batch.records)
      require(record >= 0 && record < plan.order().records());
  }
}

// The bytes: budgets, the tokens of each, what becomes of longer records; then lengths.
void check_packs(std::string_view bytes) {
  constexpr std::size_t kHeadBytes = 4;
  if (bytes.size() < kHeadBytes) return;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  const std::size_t budgets = 1 + byte(0) % 2;
  const std::size_t records = std::min((bytes.size() - kHeadBytes) / budgets, kMaxLengths);
  PackingOptions options;
  options.overlong = static_cast<Overlong>(byte(3) % 3);
  CountedRecords counted;
  counted.records = static_cast<std::int64_t>(records);
  std::vector<std::vector<std::uint32_t>> left(budgets, std::vector<std::uint32_t>(records));
  for (std::size_t b = 0; b < budgets; ++b) {
    options.tokens.push_back(1 + byte(1 + b) % 64);
    for (std::size_t i = 0; i < records; ++i) left[b][i] = byte(kHeadBytes + i * budgets + b);
    counted.tables.push_back(std::make_shared<const LengthTable>(left[b]));
  }
  const auto order = std::make_shared<const PackedOrder>(counted, options);
  const Plan plan({order, bytes.size(), 3, 0, 1, Remainder::keep, 0});
  const std::string encoded = plan.encode();
  require(Plan::decode(encoded).encode() == encoded);
  const auto epoch = plan.of_epoch(byte(3));
  for (std::int64_t step = 0; step < plan.steps(); ++step) {
    PlannedBatch batch;
    plan.batch(*epoch, step, batch);
    require(batch.packed().size() == batch.records.size());
    PackedRecord expected;
    for (std::size_t i = 0; i < batch.records.size(); ++i) {
      const PackedRecord& record = batch.rows[i];
      if (record.row != expected.row) {
        require(record.row == expected.row + 1 && record.row < batch.packs);
        expected = {.row = record.row};
      }
      require(record.record == batch.records[i] && record.segment == ++expected.segment);
      require(record.columns == expected.columns);
      for (std::size_t b = 0; b < budgets; ++b) {
        std::uint32_t& length = left[b][static_cast<std::size_t>(record.record)];
        require(length >= record.lengths[b]);
        length -= record.lengths[b];
        expected.columns[b] += record.lengths[b];
        require(expected.columns[b] <= options.tokens[b]);
        // A record that is cut comes once.
        if (options.overlong == Overlong::cut && record.lengths[b] == options.tokens[b]) length = 0;
      }
    }
  }
  for (const auto& budget : left) require(budget == std::vector<std::uint32_t>(records));
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
  may_throw([&] { check_packs(body); });
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
