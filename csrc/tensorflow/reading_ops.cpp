#include "tensorflow/reading_ops.h"

#include "core/storage/storage_options.h"
#include "tensorflow/addresses.h"

namespace tfrfast::tensorflow {
namespace {

// Finds the wanted records of some blocks. The result holds all errors except errors of a graph
// that makes no sense.
Found find_blocks(ShareHolder& shares, KernelCall& call, std::shared_ptr<const Source>* source) {
  const Progression wanted = shares.sequence(call.string(1))->records;
  const Steps blocks = steps_of(call.integers(2));
  try {
    const auto share = shares.open(call.string(0), blocks.files);
    *source = share->source();
    return share->find(wanted, blocks.begin, blocks.end);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::invalid || error.kind() == ErrorKind::out_of_range) throw;
    return {{}, {{0, encode_error(error)}}};
  }
}

}  // namespace

void compute_source(KernelCall& call) {
  SourceSpec spec;
  for (const TString& name : call.strings(0)) {
    spec.shards.push_back({std::string(name.read()), 0, 0});
  }
  spec.skip_damage = call.integer(1) != 0;
  spec.zero_copy = call.integer(2) != 0;
  spec.compression = compression_of_code(call.integer(3));
  spec.storage = StorageOptions::decode(call.string(4));
  call.set_string(0, spec.encode());
}

void compute_blocks_of_file(ShareHolder& shares, KernelCall& call) {
  const Progression wanted = shares.sequence(call.string(1))->records;
  const std::int64_t file = call.integer(2);
  const auto [begin, end] =
      shares.open(call.string(0), {}, file == 0)->blocks_of_file(wanted, file);
  call.set_integer(0, begin);
  call.set_integer(1, end);
}

void compute_step_count(ShareHolder& shares, KernelCall& call) {
  if (call.integers(2).back() == 0) return call.set_integer(0, 0);  // a stride of 0: no files
  const auto share = shares.open(call.string(0), files_of(call.integers(2)), true);
  const bool is_planned = share->source()->spec().planned;
  if (!is_planned) share->begin();
  call.set_integer(
      0, is_planned ? share->batch_count(*shares.sequence(call.string(1))) : share->block_count());
}

void compute_read_blocks(ShareHolder& shares, KernelCall& call) {
  std::shared_ptr<const Source> source;
  Found found = find_blocks(shares, call, &source);
  Records records = source == nullptr ? Records() : source->read(found.rows);
  for (Trouble& trouble : found.troubles) {
    records.add_trouble(trouble.row, std::move(trouble.error));
  }
  records.write(call, 0);
}

void compute_find_records(ShareHolder& shares, KernelCall& call) {
  std::shared_ptr<const Source> source;
  const Found found = find_blocks(shares, call, &source);
  write_found(call, 0, source.get(), found);
}

void compute_read_records(ShareHolder& shares, KernelCall& call) {
  Records records;
  try {
    const std::shared_ptr<const Source> source = shares.open(call.string(0), {})->source();
    records = source->read(rows_at(*source, call.integers(2)));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::invalid) throw;
    records = Records::of_error(encode_error(error));
  }
  fail_if(call.integer(1) != 0, records.error());
  records.write(call, 0);
}

void compute_read_batch(ShareHolder& shares, KernelCall& call) {
  const auto sequence = shares.sequence(call.string(1));
  const Steps steps = steps_of(call.integers(2));
  const std::optional<std::int64_t> step = steps.at(call.integer(3));
  Records records;
  if (!step) return records.write(call, 0);
  try {
    const auto share = shares.open(call.string(0), steps.files);
    shares.come_to(share, sequence, call.string(1), steps.seed, *step);
    records = share->source()->read(share->records_of_batch(*sequence, steps.seed, *step));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::invalid) throw;
    records = Records::of_error(encode_error(error));
  }
  fail_if(call.integer(4) != 0, records.error());
  records.write(call, 0);
}

void fail_if(bool is_full, std::string_view error) {
  if (is_full && !error.empty()) throw failure_of(error);
}

}  // namespace tfrfast::tensorflow
