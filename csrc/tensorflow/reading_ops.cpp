#include "tensorflow/reading_ops.h"

#include "tensorflow/addresses.h"

namespace tfrfast::tensorflow {
namespace {

// The wanted records of some blocks. Errors are in the result, except those of a graph that makes
// no sense.
Found find_blocks(PartHolder& parts, KernelCall& call, std::shared_ptr<const Source>* source) {
  const Progression wanted = parts.sequence(call.string(1))->records;
  const Steps blocks = steps_of(call.integers(2));
  try {
    const auto part = parts.open(call.string(0), blocks.files);
    *source = part->source();
    return part->find(wanted, blocks.begin, blocks.end);
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
  spec.access = call.string(4);
  call.set_string(0, spec.encode());
}

void compute_blocks_of_file(PartHolder& parts, KernelCall& call) {
  const Progression wanted = parts.sequence(call.string(1))->records;
  const std::int64_t file = call.integer(2);
  const auto [begin, end] = parts.open(call.string(0), {}, file == 0)->blocks_of_file(wanted, file);
  call.set_integer(0, begin);
  call.set_integer(1, end);
}

void compute_step_count(PartHolder& parts, KernelCall& call) {
  if (call.integers(2).back() == 0) return call.set_integer(0, 0);  // a stride of 0: no files
  const auto part = parts.open(call.string(0), files_of(call.integers(2)), true);
  const bool is_planned = part->source()->spec().planned;
  if (!is_planned) part->begin();
  call.set_integer(
      0, is_planned ? part->batch_count(*parts.sequence(call.string(1))) : part->block_count());
}

void compute_read_blocks(PartHolder& parts, KernelCall& call) {
  std::shared_ptr<const Source> source;
  Found found = find_blocks(parts, call, &source);
  Records records = source == nullptr ? Records() : source->read(found.rows);
  for (Trouble& trouble : found.troubles) {
    records.add_trouble(trouble.row, std::move(trouble.error));
  }
  records.write(call, 0);
}

void compute_find_records(PartHolder& parts, KernelCall& call) {
  std::shared_ptr<const Source> source;
  const Found found = find_blocks(parts, call, &source);
  write_found(call, 0, source.get(), found);
}

void compute_read_records(PartHolder& parts, KernelCall& call) {
  Records records;
  try {
    const std::shared_ptr<const Source> source = parts.open(call.string(0), {})->source();
    records = source->read(rows_at(*source, call.integers(2)));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::invalid) throw;
    records = Records::of_error(encode_error(error));
  }
  fail_if(call.integer(1) != 0, records.error());
  records.write(call, 0);
}

void compute_read_batch(PartHolder& parts, KernelCall& call) {
  const auto sequence = parts.sequence(call.string(1));
  const Steps steps = steps_of(call.integers(2));
  const std::optional<std::int64_t> step = steps.at(call.integer(3));
  Records records;
  if (!step) return records.write(call, 0);
  try {
    const auto part = parts.open(call.string(0), steps.files);
    parts.come_to(part, sequence, call.string(1), steps.seed, *step);
    records = part->source()->read(part->records_of_batch(*sequence, steps.seed, *step));
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
