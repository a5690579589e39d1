#include "core/steps/step_spec.h"

#include <optional>
#include <utility>

namespace tfrfast {
namespace {

constexpr EncodedKind kOptions{"options of steps", "tfOS", 2};

void put(Encoder& encoder, const ByName<std::string>& texts) {
  encoder.number(texts.size());
  for (const auto& [key, value] : texts) {
    encoder.string(key);
    encoder.string(value);
  }
}

// Calls `read` for each of some names, which ascend.
template <class Read>
void read_names(Decoder& decoder, const Read& read) {
  std::optional<std::string_view> last;
  for (std::size_t left = decoder.count(); left > 0; --left) {
    const std::string_view name = decoder.string();
    if (last && name <= *last) decoder.refuse("names have another order");
    read(name);
    last = name;
  }
}

ByName<std::string> texts_of(Decoder& decoder) {
  ByName<std::string> texts;
  read_names(decoder, [&](std::string_view name) { texts.emplace(name, decoder.string()); });
  return texts;
}

StepOptions decode_options(std::string_view encoded) {
  Decoder decoder(kOptions, encoded);
  StepOptions options;
  options.names = texts_of(decoder);
  read_names(decoder, [&](std::string_view name) {
    StepWindow window;
    window.before = decoder.small_number();
    window.after = decoder.small_number();
    window.stride = decoder.small_number();
    window.pad = decoder.choice(StepWindow::Pad::leave_out);
    options.windows.emplace(name, window);
  });
  read_names(decoder, [&](std::string_view name) {
    LaterStep later;
    later.of = decoder.string();
    later.seed = decoder.number();
    later.min_steps = decoder.small_number();
    later.max_steps = decoder.small_number();
    options.laters.emplace(name, std::move(later));
  });
  read_names(decoder, [&](std::string_view name) {
    OneOf& one_of = options.choices[std::string(name)];
    one_of.seed = decoder.number();
    one_of.of.resize(decoder.count());
    if (one_of.of.empty()) decoder.refuse("a choice has no features");
    for (std::string& each : one_of.of) each = decoder.string();
  });
  options.absent = texts_of(decoder);
  if (decoder.flag()) {
    auto& columns = options.columns.emplace();
    read_names(decoder, [&](std::string_view name) { columns.emplace(name); });
  }
  options.without_windows = decoder.flag();
  if (decoder.flag()) options.chosen = decoder.string();
  decoder.finish();
  return options;
}

}  // namespace

std::string encode_options(const StepOptions& options) {
  Encoder encoder(kOptions);
  put(encoder, options.names);
  encoder.number(options.windows.size());
  for (const auto& [name, window] : options.windows) {
    encoder.string(name);
    for (const std::uint32_t each : {window.before, window.after, window.stride}) {
      encoder.number(each);
    }
    encoder.choice(window.pad);
  }
  encoder.number(options.laters.size());
  for (const auto& [name, later] : options.laters) {
    encoder.string(name);
    encoder.string(later.of);
    for (const std::uint64_t each :
         {later.seed, std::uint64_t{later.min_steps}, std::uint64_t{later.max_steps}}) {
      encoder.number(each);
    }
  }
  encoder.number(options.choices.size());
  for (const auto& [name, one_of] : options.choices) {
    encoder.string(name);
    encoder.number(one_of.seed);
    encoder.number(one_of.of.size());
    for (const std::string& each : one_of.of) encoder.string(each);
  }
  put(encoder, options.absent);
  encoder.flag(options.columns.has_value());
  if (options.columns) {
    encoder.number(options.columns->size());
    for (const std::string& name : *options.columns) encoder.string(name);
  }
  encoder.flag(options.without_windows);
  encoder.flag(options.chosen.has_value());
  if (options.chosen) encoder.string(*options.chosen);
  return encoder.finish();
}

std::string StepSpec::encode() const {
  Encoder encoder(kEncoding);
  encoder.string(path);
  encoder.number(stamp);
  encoder.string(encode_options(options));
  return encoder.finish();
}

StepSpec StepSpec::decode(std::string_view encoded) {
  Decoder decoder(kEncoding, encoded);
  StepSpec spec;
  spec.path = decoder.string();
  spec.stamp = decoder.number();
  spec.options = decode_options(decoder.string());
  decoder.finish();
  return spec;
}

std::shared_ptr<const StepReader> StepSpec::open(std::shared_ptr<const Reader> records) const {
  auto file = StepFile::open(path, records->shards(), stamp);
  return std::make_shared<const StepReader>(std::move(records), std::move(file), options);
}

}  // namespace tfrfast
