// Takes any bytes as an episode, as a part of a step file and as a step file. The bytes are refused
// with an Error with a message, or every step is right or an Error.
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/crc32c/crc32c.h"
#include "core/shard/framing.h"
#include "core/steps/cut_record.h"
#include "core/steps/step_file.h"
#include "core/steps/step_part.h"
#include "core/steps/step_reader.h"
#include "core/steps/step_tables.h"
#include "may_throw.h"
#include "memory_file.h"

using namespace tfrfast;

namespace {

using Bytes = std::vector<std::uint8_t>;

const StepAxis kAxis{{"s/"}, {}};
constexpr std::uint64_t kStamp = 5;
constexpr std::uint32_t kMaxSteps = 1 << 12;

// Pieces lie in the record, and follow one another to the end of their list.
bool check_cut(WireBytes record) {
  const CutRecord cut = cut_record(record, kAxis);
  const std::uint8_t* const end = record.data() + record.size();
  for (const CutFeature& each : cut.features) {
    require(each.pieces.data() >= record.data() && each.pieces.data() + each.pieces.size() <= end);
    require(each.sizes.empty() == (each.width != 0));
    const std::uint64_t bytes =
        each.width != 0 ? std::uint64_t{each.width} * cut.steps
                        : std::accumulate(each.sizes.begin(), each.sizes.end(), std::uint64_t{0});
    require(bytes <= each.pieces.size() && each.pieces.size() - bytes < 4);
  }
  for (const WireBytes& each : cut.rest) {
    require(each.data() >= record.data() && each.data() + each.size() <= end);
  }
  return cut.steps > 0;
}

// A shard of one record.
Bytes framed(WireBytes record) {
  Bytes shard(kFrameOverhead + record.size());
  store_little_endian<std::uint64_t>(shard.data(), record.size());
  store_little_endian<std::uint32_t>(&shard[8], masked_crc32c(shard.data(), 8).value);
  if (!record.empty()) std::memcpy(&shard[12], record.data(), record.size());
  store_little_endian<std::uint32_t>(&shard[12 + record.size()],
                                     masked_crc32c(record.data(), record.size()).value);
  return shard;
}

// Gives any bytes the right checksums.
void repair(Bytes& file) {
  if (file.size() < sizeof(StepFileHeader)) return;
  const auto body_at = load_little_endian<std::uint64_t>(&file[64]);
  const auto described = load_little_endian<std::uint64_t>(&file[56]);
  if (body_at > file.size() || body_at < 96 || described > body_at - 96) return;
  const std::uint64_t body = file.size() - body_at;
  store_little_endian<std::uint64_t>(&file[72], body);
  for (std::uint64_t at = 0, crc_at = 96 + described; at < body;
       at += kStepBlockBytes, crc_at += 4) {
    if (crc_at + 4 > body_at) return;
    const std::uint64_t count = std::min(kStepBlockBytes, body - at);
    store_little_endian<std::uint32_t>(&file[crc_at], crc32c(&file[body_at + at], count));
  }
  const std::uint32_t crc = crc32c(file.data(), 92);
  store_little_endian<std::uint32_t>(&file[92], crc32c(&file[96], body_at - 96, crc));
}

// A window and a later step of each feature, if that many bits say so.
StepOptions options_for(const StepFile& file, unsigned bits) {
  StepOptions options;
  for (const StepFeature& each : file.features()) {
    if ((bits & 1) != 0) options.windows[each.name] = {1, 2, 1 + bits / 4, StepWindow::Pad::zeros};
    if ((bits & 2) != 0) options.laters["later/" + each.name] = {each.name, bits, bits / 8, 9};
  }
  return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  may_throw([&] { StepPart::decode({reinterpret_cast<const char*>(data), size}); });
  if (size < 1) return 0;
  // The input holds a record and the changes of its step file. A change has two bytes for its place
  // and one byte for its value.
  const std::size_t changes = data[0] % 16;
  const std::size_t change_bytes = std::min(changes * 3, size - 1);
  const std::uint8_t* const change = data + 1;
  const WireBytes record(data + 1 + change_bytes, size - 1 - change_bytes);
  static MemoryFile shard, file;
  may_throw([&] {
    if (!check_cut(record)) return;
    StepPartMaker maker(StepLayout::of(kAxis, record));
    maker.add(record, [] { return std::string("It"); });
    const StepPart part = maker.finish();
    require(StepPart::decode(part.encode()).encode() == part.encode());
    if (part.steps[0] > kMaxSteps) return;
    StepTables tables(kAxis);
    tables.append(part);
    shard.set(framed(record));
    ShardSetOptions options;
    options.index.use = IndexUse::memory;
    const auto reader =
        std::make_shared<const Reader>(ShardSet::open({shard.path()}, options), ReadOptions{});
    const StepFileBytes made = std::move(tables).finish(reader->shards().fingerprint(), kStamp);
    Bytes intact(static_cast<std::size_t>(made.size()));
    made.read(0, intact);
    Bytes bytes = intact;
    for (std::size_t i = 0; i + 3 <= change_bytes; i += 3) {
      bytes[load_little_endian<std::uint16_t>(change + i) % bytes.size()] = change[i + 2];
    }
    repair(bytes);
    file.set(bytes);
    const auto opened = StepFile::open(file.path(), reader->shards(), kStamp);
    const StepReader steps(reader, opened, options_for(*opened, data[0] / 16));
    const bool is_intact = intact == bytes;
    for (std::uint64_t step = 0; step < std::min<std::uint64_t>(steps.record_count(), 8); ++step) {
      const auto read = [&] { require(steps.read_one(step)->size() == 1); };
      if (is_intact) {
        read();
      } else {
        may_throw(read);
      }
    }
  });
  return 0;
}
