// Walks through an Example's map of features.
#pragma once

#include <cstdint>

#include "core/example/wire.h"

namespace tfrfast {

// Calls `on_entry(entry, key, feature)` for each entry of the map, in the order of the bytes,
// through concatenated Examples too. Returns null, or the first byte that does not fit an Example.
template <class OnEntry>
const std::uint8_t* for_each_whole_entry(WireBytes record, OnEntry&& on_entry,
                                         unsigned map_field = 1) {
  WireReader example(record);
  std::uint32_t length;
  while (!example.at_end()) {
    if (!example.take(bytes_tag(map_field))) {
      if (!example.skip_field()) return example.position();
      continue;
    }
    if (!example.read_length(length)) return example.position();
    WireReader features(example.enter(length));
    while (!features.at_end()) {
      if (!features.take(bytes_tag(1)) || !features.read_length(length)) {
        return features.position();
      }
      // The key and the value may come in either order. No other field may follow.
      const WireBytes whole = features.enter(length);
      WireReader entry(whole);
      WireBytes key, feature;
      for (int field = 0; field < 2; ++field) {
        std::uint32_t tag;
        if (!entry.read_length(tag) || (tag != bytes_tag(1) && tag != bytes_tag(2)) ||
            !entry.read_bytes(tag == bytes_tag(1) ? key : feature)) {
          return entry.position();
        }
      }
      if (!entry.at_end()) return entry.position();
      on_entry(whole, key, feature);
    }
  }
  return nullptr;
}

// Like for_each_whole_entry(), with `on_entry(key, feature)`.
template <class OnEntry>
const std::uint8_t* for_each_entry(WireBytes record, OnEntry&& on_entry, unsigned map_field = 1) {
  return for_each_whole_entry(
      record, [&](WireBytes, WireBytes key, WireBytes feature) { on_entry(key, feature); },
      map_field);
}

}  // namespace tfrfast
