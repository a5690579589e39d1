#include "tensorflow/decoding_ops.h"

#include <algorithm>

#include "tensorflow/reading_ops.h"

namespace tfrfast::tensorflow {
namespace {

WireBytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

PooledBuffer buffer_for(std::size_t bytes) {
  return PooledBuffer(std::max<std::size_t>(1, bytes));
}

}  // namespace

void compute_parse_example(DecodingKernel& kernel, KernelCall& call) {
  std::vector<WireBytes> wires;
  for (const TString& record : call.strings(0)) wires.push_back(bytes_of(record.read()));
  const auto features = kernel.features(call.string(1));
  write_columns(call, 0, *features, kernel.decode(features, wires, {}));
}

namespace {

// With an error, the columns hold the good records.
void write_decoded(KernelCall& call, const FeatureSchema& features, bool is_full,
                   DecodedRows decoded) {
  fail_if(is_full, decoded.error);
  const int next = write_columns(call, 0, features, std::move(decoded.columns));
  call.set_integer(next, static_cast<std::int64_t>(decoded.rows));
  call.set_string(next + 1, decoded.error);
}

}  // namespace

void compute_decode_batch(DecodingKernel& kernel, KernelCall& call) {
  const auto sequence = kernel.sequence(call.string(1));
  const Steps steps = steps_of(call.integers(2));
  const std::optional<std::int64_t> step = steps.at(call.integer(3));
  const auto features = kernel.features(call.string(5));
  const auto decoded = [&]() -> DecodedRows {
    if (!step) return {kernel.decode(features, {}, {}), 0, ""};
    std::shared_ptr<const Source> source;
    std::vector<std::int64_t> records;
    try {
      const auto share = kernel.share(call.string(0), steps.files);
      source = share->source();
      records = share->records_of_batch(*sequence, steps.seed, *step);
      const auto valid = std::make_unique<bool[]>(records.size());
      std::fill_n(valid.get(), records.size(), true);
      kernel.shares().come_to(share, sequence, call.string(1), steps.seed, *step);
      LoadedBatch batch = kernel.load(source, features, records, valid.get());
      return {std::move(batch.columns), batch.rows, ""};
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::invalid) throw;
      if (error.kind() == ErrorKind::feature || source == nullptr) {
        return kernel.failed(features, error);
      }
    }
    // Some record is damaged. Read again, for the good records.
    std::vector<Row> rows(records.size());
    source->frames().locate(records, rows.data());
    return kernel.decode(source, features, rows);
  };
  write_decoded(call, *features, call.integer(4) != 0, decoded());
}

void compute_decode_rows(DecodingKernel& kernel, KernelCall& call) {
  const Wanted wanted = wanted_of(call.integers(1));
  const auto features = kernel.features(call.string(6));
  const auto decoded = [&]() -> DecodedRows {
    try {
      const FoundRows found = find_rows(kernel.walks(), call.string(0), wanted, call.integers(3),
                                        call.strings(4), call.integer(5));
      if (found.rows.empty()) return {kernel.decode(features, {}, {}), 0, found.error};
      DecodedRows rows = kernel.decode(found.source, features, found.rows);
      if (rows.error.empty()) rows.error = found.error;
      return rows;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::invalid) throw;
      return kernel.failed(features, error);
    }
  };
  write_decoded(call, *features, call.integer(2) != 0, decoded());
}

namespace {

void write_records(KernelCall& call, const Records& read, const LoadingPlan::StepRows& rows) {
  PooledBuffer indices = buffer_for(rows.records.size() * sizeof(std::int64_t));
  PooledBuffer valid = buffer_for(rows.records.size());
  std::int64_t count = 0;
  read.for_each([&](std::size_t row, WireBytes) {
    indices.as<std::int64_t>()[count] = rows.records[row];
    valid.as<bool>()[count++] = rows.valid[row];
  });
  read.write_all(call, 0);
  call.set_tensor(1, DataType::int64, {count}, std::move(indices));
  call.set_tensor(2, DataType::boolean, {count}, std::move(valid));
  call.set_string(3, "");
}

void write_batch(KernelCall& call, const FeatureSchema& features, LoadedBatch batch) {
  const Shape shape = {static_cast<std::int64_t>(batch.rows)};
  const int next = write_columns(call, 0, features, std::move(batch.columns));
  call.set_tensor(next, DataType::int64, shape, std::move(batch.indices));
  call.set_tensor(next + 1, DataType::boolean, shape, std::move(batch.valid));
  call.set_string(next + 2, "");
}

}  // namespace

void compute_load_batch(DecodingKernel& kernel, KernelCall& call) {
  const std::span<const std::int64_t> run = call.integers(2);
  if (run.size() != 2) {
    throw Error(
        ErrorKind::invalid,
        "A loader's steps are given by two numbers: the first epoch and the number of steps.");
  }
  const std::int64_t step = call.integer(4);
  const auto plan = kernel.plan(call.string(1), run[0], call.integer(3));
  const std::string_view description = call.string(5);
  const auto features = description.empty() ? nullptr : kernel.features(description);
  const LoadingPlan::StepRows rows =
      plan->rows(step, features != nullptr && features->needs_draws());
  const auto write_error = [&](const std::string& error) {
    int next = 1;
    if (features == nullptr) {
      call.allocate_strings(0, 0);
    } else {
      next = write_columns(call, 0, *features, kernel.decode(features, {}, {}));
    }
    call.set_tensor(next, DataType::int64, {0}, buffer_for(0));
    call.set_tensor(next + 1, DataType::boolean, {0}, buffer_for(0));
    call.set_string(next + 2, error);
  };

  try {
    const auto source = kernel.share(call.string(0), {})->source();
    kernel.come_to(source, plan, step, run[1]);
    if (features != nullptr) {
      LoadedBatch batch = kernel.load(source, features, rows.records, rows.valid.get(), rows.draws);
      return write_batch(call, *features, std::move(batch));
    }
    const Records read = source->read(rows.records);
    if (read.error().empty()) return write_records(call, read, rows);
    write_error(read.error());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::invalid) throw;
    write_error(encode_error(error));
  }
}

}  // namespace tfrfast::tensorflow
