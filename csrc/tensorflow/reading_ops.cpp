#include "tensorflow/reading_ops.h"

#include <algorithm>
#include <optional>

#include "core/storage/storage_options.h"
#include "tensorflow/feature_tensors.h"
#include "tensorflow/shared_strings.h"

namespace tfrfast::tensorflow {
namespace {

// The outputs after the columns.
constexpr int kFacts = 7;

WireBytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

void write_strings(KernelCall& call, int output, const ReadBatch& read) {
  TString* out = call.allocate_strings(output, read.rows.size()).data();
  for (const Piece& piece : read.pieces) {
    write_shared_strings(
        out, piece.rows.size(), [&](std::size_t i) { return piece.payloads[i]; }, piece.memory);
    out += piece.rows.size();
  }
}

// The rows' numbers and flags.
struct Facts {
  std::vector<std::int64_t> good, before, records;
  std::vector<std::string> errors;
  std::vector<char> valid;
  bool is_sound = true;

  void add(const ReadBatch& read, const BatchRows& batch) {
    good.push_back(static_cast<std::int64_t>(read.rows.size()));
    before.push_back(static_cast<std::int64_t>(read.rows_before_error()));
    errors.push_back(read.error());
    if (batch.valid == nullptr) return;
    for (const std::size_t row : read.rows) {
      records.push_back(batch.records[row]);
      valid.push_back(batch.valid[row]);
    }
  }

  void write(KernelCall& call, int output, std::int64_t count) const {
    call.set_integer(output, count);
    call.set_boolean(output + 1, is_sound);
    call.set_integers(output + 2, good);
    call.set_integers(output + 3, before);
    TString* out = call.allocate_strings(output + 4, errors.size()).data();
    for (const std::string& error : errors) (out++)->write_copy(error.data(), error.size());
    call.set_integers(output + 5, records);
    call.set_booleans(output + 6, valid);
  }
};

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
  if (call.integers(2).back() == 0) return call.set_integer(0, 0);  // a stride of 0: no files
  const auto share = requests.share(call.string(0), files_of(call.integers(2)), true);
  call.set_integer(0, share->batch_count(*requests.sequence(call.string(1))));
}

void compute_read(ReadingKernel& kernel, KernelCall& call) {
  const std::string_view description = call.string(4);
  const auto decoders = description.empty() ? nullptr : kernel.decoders.get(description);
  const bool with_draws = decoders != nullptr && decoders->features().needs_draws();
  const Request request = kernel.requests.find(call.string(0), call.string(1), call.integers(2),
                                               call.strings(3), with_draws);
  const int room = call.output_count() - kFacts;
  Facts facts;
  for (int next = 0; next < room;) {
    const auto number = static_cast<std::int64_t>(facts.good.size());
    const bool exists = number < request.count;
    BatchRows batch;
    ReadBatch read;
    try {
      if (exists) {
        batch = request.rows(number);
        read = read_batch(batch, decoders.get());
      }
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::invalid) throw;
      read = {};
      read.troubles.push_back({0, encode_error(error)});
    }
    if (request.is_full && !read.troubles.empty()) throw failure_of(read.error());
    facts.add(read, batch);
    if (exists && (!read.troubles.empty() || (read.rows.empty() && batch.packed.packs == 0)))
      facts.is_sound = false;
    if (decoders == nullptr) {
      write_strings(call, next++, read);
      continue;
    }
    if (read.columns.empty()) read.columns = decoders->no_rows();
    next = write_columns(call, next, decoders->features(), std::move(read.columns));
  }
  facts.write(call, room, std::min<std::int64_t>(request.count, facts.good.size()));
}

void compute_parse_example(ReadingKernel& kernel, KernelCall& call) {
  std::vector<WireBytes> wires;
  for (const TString& record : call.strings(0)) wires.push_back(bytes_of(record.read()));
  const auto decoders = kernel.decoders.get(call.string(1));
  write_columns(call, 0, decoders->features(),
                decoders->with_one([&](RowDecoder& decoder) { return decoder.decode(wires); }));
}

}  // namespace tfrfast::tensorflow
