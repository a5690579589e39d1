#include "core/storage/storage_options.h"

namespace tfrfast {

std::string StorageOptions::encode() const {
  Encoder encoder(kEncoding);
  write_to(encoder);
  return encoder.finish();
}

StorageOptions StorageOptions::decode(std::string_view encoded) {
  Decoder decoder(kEncoding, encoded);
  StorageOptions options = read_from(decoder);
  decoder.finish();
  return options;
}

void StorageOptions::write_to(Encoder& encoder) const {
  encoder.string(access);
  encoder.string(cache_folder);
  encoder.number(cache_limit_bytes);
  encoder.string(place);
  encoder.string(inflated_folder);
  encoder.number(inflated_limit_bytes);
}

StorageOptions StorageOptions::read_from(Decoder& decoder) {
  StorageOptions options;
  options.access = decoder.string();
  options.cache_folder = decoder.string();
  options.cache_limit_bytes = decoder.number();
  options.place = decoder.string();
  options.inflated_folder = decoder.string();
  options.inflated_limit_bytes = decoder.number();
  return options;
}

}  // namespace tfrfast
