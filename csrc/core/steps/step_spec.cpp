#include "core/steps/step_spec.h"

#include <utility>

namespace tfrfast {
namespace {

constexpr EncodedKind kOptions{"options of steps", "tfOS", 2};

constexpr auto code_options = [](auto& coder, auto& options) {
  const auto code_text = [&](auto& text) { coder.string(text); };
  coder.by_name(options.names, code_text);
  coder.by_name(options.windows, [&](auto& window) {
    coder.number(window.before);
    coder.number(window.after);
    coder.number(window.stride);
    coder.choice(window.pad, StepWindow::Pad::leave_out);
  });
  coder.by_name(options.laters, [&](auto& later) {
    coder.string(later.of);
    coder.number(later.seed);
    coder.number(later.min_steps);
    coder.number(later.max_steps);
  });
  coder.by_name(options.choices, [&](auto& one_of) {
    coder.number(one_of.seed);
    coder.list(one_of.of, code_text);
    coder.require(!one_of.of.empty(), "a choice has no features");
  });
  coder.by_name(options.absent, code_text);
  coder.optional(options.columns, [&](auto& columns) { coder.names(columns); });
  coder.flag(options.without_windows);
  coder.optional(options.chosen, code_text);
};

constexpr auto code_spec = [](auto& coder, auto& spec) {
  coder.string(spec.path);
  coder.number(spec.stamp);
  coder.encoding(kOptions, spec.options, code_options);
};

}  // namespace

std::string encode_options(const StepOptions& options) {
  return encode_as(kOptions, options, code_options);
}

std::string StepSpec::encode() const {
  return encode_as(kEncoding, *this, code_spec);
}

StepSpec StepSpec::decode(std::string_view encoded) {
  return decode_as<StepSpec>(kEncoding, encoded, code_spec);
}

std::shared_ptr<const StepReader> StepSpec::open(std::shared_ptr<const Reader> records) const {
  auto file = StepFile::open(path, records->shards(), stamp);
  return std::make_shared<const StepReader>(std::move(records), std::move(file), options);
}

}  // namespace tfrfast
