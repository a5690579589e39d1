#include "core/steps/step_spec.h"

#include <limits>
#include <utility>

namespace tfrfast {
namespace {

constexpr EncodedKind kOptions{"options of steps", "tfOS"};

void put(Encoder& encoder, const std::map<std::string, std::string, std::less<>>& texts) {
  encoder.number(texts.size());
  for (const auto& [key, value] : texts) {
    encoder.string(key);
    encoder.string(value);
  }
}

std::map<std::string, std::string, std::less<>> texts_of(Decoder& decoder) {
  std::map<std::string, std::string, std::less<>> texts;
  for (std::size_t left = decoder.count(); left > 0; --left) {
    const std::string_view key = decoder.string();
    if (!texts.empty() && key <= texts.rbegin()->first) decoder.refuse("names have another order");
    texts.emplace(key, decoder.string());
  }
  return texts;
}

std::uint32_t small_number(Decoder& decoder) {
  const std::uint64_t number = decoder.number();
  if (number > std::numeric_limits<std::uint32_t>::max()) decoder.refuse("a window is too large");
  return static_cast<std::uint32_t>(number);
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
  put(encoder, options.absent);
  encoder.flag(options.columns.has_value());
  if (options.columns) {
    encoder.number(options.columns->size());
    for (const std::string& name : *options.columns) encoder.string(name);
  }
  encoder.flag(options.chosen.has_value());
  if (options.chosen) encoder.string(*options.chosen);
  return encoder.finish();
}

namespace {

StepOptions decode_options(std::string_view encoded) {
  Decoder decoder(kOptions, encoded);
  StepOptions options;
  options.names = texts_of(decoder);
  for (std::size_t left = decoder.count(); left > 0; --left) {
    const std::string_view name = decoder.string();
    if (!options.windows.empty() && name <= options.windows.rbegin()->first) {
      decoder.refuse("windows have another order");
    }
    StepWindow window;
    window.before = small_number(decoder);
    window.after = small_number(decoder);
    window.stride = small_number(decoder);
    window.pad = decoder.choice(StepWindow::Pad::leave_out);
    options.windows.emplace(name, window);
  }
  for (std::size_t left = decoder.count(); left > 0; --left) {
    const std::string_view name = decoder.string();
    if (!options.laters.empty() && name <= options.laters.rbegin()->first) {
      decoder.refuse("later steps have another order");
    }
    LaterStep later;
    later.of = decoder.string();
    later.seed = decoder.number();
    later.min_steps = small_number(decoder);
    later.max_steps = small_number(decoder);
    options.laters.emplace(name, std::move(later));
  }
  options.absent = texts_of(decoder);
  if (decoder.flag()) {
    auto& columns = options.columns.emplace();
    for (std::size_t left = decoder.count(); left > 0; --left) {
      const std::string_view name = decoder.string();
      if (!columns.empty() && name <= *columns.rbegin()) {
        decoder.refuse("columns have another order");
      }
      columns.emplace(name);
    }
  }
  if (decoder.flag()) options.chosen = decoder.string();
  decoder.finish();
  return options;
}

}  // namespace

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
