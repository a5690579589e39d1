#include "tensorflow/reading_ops.h"

#include "core/storage/storage_options.h"

namespace tfrfast::tensorflow {
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

void compute_step_count(ShareHolder& shares, KernelCall& call) {
  if (call.integers(2).back() == 0) return call.set_integer(0, 0);  // a stride of 0: no files
  const auto share = shares.open(call.string(0), files_of(call.integers(2)), true);
  call.set_integer(0, share->batch_count(*shares.sequence(call.string(1))));
}

void compute_read_rows(WalkHolder& holder, KernelCall& call) {
  const Wanted wanted = wanted_of(call.integers(1));
  Records records;
  try {
    FoundRows found = find_rows(holder, call.string(0), wanted, call.integers(3), call.strings(4),
                                call.integer(5));
    if (!found.rows.empty()) records = found.source->read(found.rows);
    if (!found.error.empty()) records.add_trouble(found.rows.size(), std::move(found.error));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::invalid) throw;
    records = Records::of_error(encode_error(error));
  }
  fail_if(call.integer(2) != 0, records.error());
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
