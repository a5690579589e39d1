// Any bytes as a plan and a feature plan: refused with an Error that says something, or
// understood. What was understood is encoded to the same bytes, and gives records that exist.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/encoding.h"
#include "core/example/schema.h"
#include "core/order/plan.h"
#include "may_throw.h"

using namespace tfrfast;

namespace {

constexpr std::int64_t kMostRows = 1000;

void check_plan(std::string_view bytes) {
  const Plan plan = Plan::decode(bytes);
  require(plan.encode() == bytes);
  require(!plan.order_description().empty());
  for (const std::int64_t step : {std::int64_t{0}, plan.steps() - 1}) {
    const std::size_t rows = plan.row_count(step);
    if (rows > kMostRows) continue;
    std::vector<std::int64_t> records(rows);
    require(plan.rows(bytes.size(), step, records.data(), nullptr) == rows);
    for (const std::int64_t record : records)
      require(record >= 0 && record < plan.order().records());
  }
}

void check_features(std::string_view bytes) {
  const FeaturePlan plan = FeaturePlan::decode(bytes);
  require(plan.encode() == bytes);
}

// With the head that such bytes have: without it few inputs would get past it.
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
  may_throw([&] { check_features(body); });
  may_throw([&] { check_features(with_head(FeaturePlan::kEncoding, body)); });
  return 0;
}
