#include "tensorflow/reading_ops.h"

#include <algorithm>
#include <utility>

#include "core/storage/storage_options.h"
#include "tensorflow/tensors.h"

namespace tfrfast::tensorflow {
namespace {

// The outputs after the columns.
constexpr int kFacts = 3;

WireBytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

void write_strings(KernelCall& call, int output, const ReadBatch& read) {
  TString* out = call.allocate_strings(output, read.rows.size()).data();
  for (const GoodRows& piece : read.pieces) {
    write_shared_strings(
        out, piece.rows.size(), [&](std::size_t i) { return piece.payloads[i]; }, piece.memory);
    out += piece.rows.size();
  }
}

// Writes the columns of a batch from output `next` on. Returns the number after the last output.
int write_batch(KernelCall& call, int next, ReadBatch& read, const Decoders* decoders) {
  if (decoders == nullptr) {
    write_strings(call, next, read);
    return next + 1;
  }
  if (read.columns.empty()) read.columns = decoders->no_rows();
  return write_columns(call, next, decoders->features(), std::move(read.columns));
}

// Reads a batch. Errors are results, unless they are the graph's.
ReadBatch read_or_tell(const Request& request, std::int64_t number, const Decoders* decoders,
                       BatchRows& batch) {
  try {
    batch = request.rows(number);
    return read_batch(batch, decoders);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::invalid) throw;
    ReadBatch none;
    none.troubles.push_back({0, encode_error(error)});
    return none;
  }
}

std::shared_ptr<const Decoders> decoders_of(ReadingKernel& kernel, std::string_view features) {
  return features.empty() ? nullptr : kernel.decoders.get(features);
}

}  // namespace

void compute_source(KernelCall& call) {
  SourceSpec spec;
  for (const TString& name : call.strings(0)) {
    spec.shards.push_back({std::string(name.read()), 0, 0});
  }
  spec.skip_damage = call.integer(1) != 0;
  spec.compression = compression_of_code(call.integer(2));
  spec.storage = StorageOptions::decode(call.string(3));
  call.set_string(0, spec.encode());
}

void compute_step_count(Requests& requests, KernelCall& call) {
  const std::span<const std::int64_t> files = call.integers(2);
  std::int64_t counted[] = {0, 0};
  if (files.empty() || files.back() != 0) {  // a stride of 0: none
    const auto [share, edition] = requests.begin_share(call.string(0), files_of(files));
    counted[0] = share->batch_count(*requests.sequence(call.string(1)));
    counted[1] = edition;
  }
  call.set_integers(0, counted);
}

void compute_read(ReadingKernel& kernel, KernelCall& call) {
  const auto decoders = decoders_of(kernel, call.string(4));
  const Request request =
      kernel.requests.find(call.string(0), call.string(1), call.integers(2), call.strings(3));
  const int room = call.output_count() - kFacts;
  bool is_sound = true;
  std::vector<std::int64_t> good, before;
  std::vector<std::string> errors;
  for (int next = 0; next < room;) {
    const auto number = static_cast<std::int64_t>(good.size());
    BatchRows batch;
    ReadBatch read;
    if (number < request.count) {
      read = read_or_tell(request, number, decoders.get(), batch);
      if (request.is_full && !read.troubles.empty()) throw decode_error(read.error());
      is_sound = is_sound && read.troubles.empty() && !read.rows.empty();
    }
    good.push_back(static_cast<std::int64_t>(read.rows.size()));
    before.push_back(static_cast<std::int64_t>(read.rows_before_error()));
    errors.push_back(read.error());
    next = write_batch(call, next, read, decoders.get());
  }
  call.set_boolean(room, is_sound);
  good.insert(good.begin(), request.count);
  good.insert(good.end(), before.begin(), before.end());
  call.set_integers(room + 1, good);
  TString* out = call.allocate_strings(room + 2, errors.size()).data();
  for (const std::string& error : errors) (out++)->write_copy(error.data(), error.size());
}

void compute_load(ReadingKernel& kernel, KernelCall& call) {
  const auto decoders = decoders_of(kernel, call.string(4));
  const std::span<const std::int64_t> run = call.integers(2);
  std::vector<std::int64_t> place(run.begin(), run.end());
  place.push_back(call.integer(3));
  const bool with_draws = decoders != nullptr && decoders->features().needs_draws();
  const Request request =
      kernel.requests.find(call.string(0), call.string(1), place, {}, with_draws);
  BatchRows batch;
  ReadBatch read = read_or_tell(request, 0, decoders.get(), batch);
  if (!read.rows.empty() && batch.valid == nullptr) {
    throw Error(ErrorKind::invalid, "A Loader's step needs the plan of a Loader.");
  }
  std::vector<std::int64_t> records;
  std::vector<char> valid;
  for (const std::size_t row : read.rows) {
    records.push_back(batch.records[row]);
    valid.push_back(batch.valid[row]);
  }
  if (!read.rows.empty()) {
    LoadCounts& counts = batch.source->counts_of(call.string(1));
    counts.records += static_cast<std::uint64_t>(std::count(valid.begin(), valid.end(), 1));
    counts.bytes += read.payload_bytes;
    ++counts.batches;
  }
  const int next = write_batch(call, 0, read, decoders.get());
  call.set_integers(next, records);
  call.set_booleans(next + 1, valid);
  call.set_string(next + 2, read.error());
}

void compute_parse_example(ReadingKernel& kernel, KernelCall& call) {
  std::vector<WireBytes> wires;
  for (const TString& record : call.strings(0)) wires.push_back(bytes_of(record.read()));
  const auto decoders = kernel.decoders.get(call.string(1));
  write_columns(call, 0, decoders->features(),
                decoders->with_one([&](RowDecoder& decoder) { return decoder.decode(wires); }));
}

}  // namespace tfrfast::tensorflow
