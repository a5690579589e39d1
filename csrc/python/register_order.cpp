// The orders and Plan. tfrfast/base/arguments.py has checked the arguments' types.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/load/image_draws.h"
#include "core/order/block_shuffle.h"
#include "core/order/chosen_order.h"
#include "core/order/in_order.h"
#include "core/order/interleaved_order.h"
#include "core/order/length_batches.h"
#include "core/order/mixture.h"
#include "core/order/packed_order.h"
#include "core/order/permutation.h"
#include "core/order/plan.h"
#include "core/order/ranges.h"
#include "core/order/sequence.h"
#include "core/order/shuffle.h"
#include "core/order/weighted.h"
#include "python/arrays.h"
#include "python/classes.h"
#include "python/python_reader.h"
#include "python/register.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

using Int64Array = Numbers<std::int64_t>;

// Below this number of values, the work takes less time than releasing and retaking the GIL.
constexpr std::size_t kReleaseGilValues = 4096;

template <class Work>
void compute(std::size_t values, Work&& work) {
  if (values < kReleaseGilValues) return work();
  const WithoutGil without_gil;
  work();
}

std::shared_ptr<BlockShuffle> make_block_shuffle(std::int64_t num_records,
                                                 std::int64_t block_records,
                                                 std::int64_t window_blocks, std::int64_t streams) {
  return std::make_shared<BlockShuffle>(num_records,
                                        BlockShape{block_records, window_blocks, streams});
}

std::shared_ptr<ChosenOrder> make_chosen_order(std::shared_ptr<Order> order,
                                               const Int64Array& indices,
                                               std::int64_t num_records) {
  return std::make_shared<ChosenOrder>(std::move(order), copy_of(indices), num_records);
}

std::shared_ptr<Weighted> make_weighted(std::shared_ptr<Order> order, const Int64Array& weights) {
  return std::make_shared<Weighted>(std::move(order), copy_of(weights));
}

constexpr std::int64_t kMaxLength = (std::int64_t{1} << 31) - 1;

std::shared_ptr<LengthTable> make_length_table(const Int64Array& lengths) {
  const std::int64_t* const in = lengths.data();
  std::vector<std::uint32_t> narrow(static_cast<std::size_t>(lengths.size()));
  const WithoutGil without_gil;
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    const std::int64_t length = in[i];
    check_range("a length", length, 0, kMaxLength);
    narrow[i] = static_cast<std::uint32_t>(length);
  }
  return std::make_shared<LengthTable>(std::move(narrow));
}

py::array lengths_of(const LengthTable& table) {
  return filled_array<std::int64_t>(table.size(), [&](std::int64_t* out) {
    for (std::size_t i = 0; i < table.size(); ++i) out[i] = table[i];
  });
}

CountedRecords counted_records(const std::vector<std::shared_ptr<LengthTable>>& tables,
                               std::int64_t first, std::int64_t num_records,
                               const std::optional<Int64Array>& indices) {
  CountedRecords counted;
  counted.tables.assign(tables.begin(), tables.end());
  counted.first = first;
  counted.records = num_records;
  counted.has_indices = indices.has_value();
  if (indices) counted.indices = copy_of(*indices);
  return counted;
}

std::shared_ptr<LengthBatches> make_length_batches(const std::shared_ptr<LengthTable>& table,
                                                   std::int64_t first, std::int64_t num_records,
                                                   const std::optional<Int64Array>& indices,
                                                   std::int64_t tokens) {
  CountedRecords counted = counted_records({table}, first, num_records, indices);
  const WithoutGil without_gil;
  return std::make_shared<LengthBatches>(std::move(counted), tokens);
}

std::shared_ptr<PackedOrder> make_packed_order(
    const std::vector<std::shared_ptr<LengthTable>>& tables, std::int64_t first,
    std::int64_t num_records, const std::optional<Int64Array>& indices,
    const std::vector<std::int64_t>& tokens, const std::string& overlong) {
  CountedRecords counted = counted_records(tables, first, num_records, indices);
  PackingOptions options{tokens, overlong_named(overlong)};
  const WithoutGil without_gil;
  return std::make_shared<PackedOrder>(std::move(counted), std::move(options));
}

py::dict fill_of(const PackedOrder& order) {
  const PackedOrder::Fill& fill = order.fill();
  py::dict result;
  result["packs"] = fill.packs;
  result["tokens"] = fill.tokens;
  result["records"] = fill.records;
  result["pieces"] = fill.pieces;
  result["left_out"] = fill.left_out;
  result["cut"] = fill.cut;
  result["split"] = fill.split;
  return result;
}

using Segments = std::vector<std::tuple<std::uint64_t, std::int64_t, std::vector<std::int64_t>>>;

std::shared_ptr<Mixture> make_mixture(const std::vector<std::shared_ptr<Order>>& sources,
                                      const std::string& arrangement, bool repeats,
                                      std::int64_t length, std::int64_t unit_rows,
                                      const Segments& segments) {
  MixtureSpec spec;
  spec.sources.assign(sources.begin(), sources.end());
  spec.arrangement = arrangement_named(arrangement);
  spec.repeats = repeats;
  spec.length = length;
  spec.unit_rows = unit_rows;
  for (const auto& [epoch, position, weights] : segments) {
    spec.segments.push_back({epoch, position, weights});
  }
  const WithoutGil without_gil;
  return std::make_shared<Mixture>(std::move(spec));
}

Plan make_plan(std::shared_ptr<Order> order, std::uint64_t seed, std::int64_t batch_size,
               std::int64_t rank, std::int64_t world, const std::string& remainder,
               std::int64_t start) {
  return Plan({std::move(order), seed, batch_size, rank, world, remainder_named(remainder), start});
}

using Three = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // first, stride, count

Progression progression_of(const Three& numbers) {
  return {std::get<0>(numbers), std::get<1>(numbers), std::get<2>(numbers)};
}

py::bytes encode_sequence(const Three& records, std::shared_ptr<Order> order,
                          const Three& positions, bool reshuffles, std::int64_t epochs,
                          std::int64_t batch_rows, bool batch_ends_with_epoch,
                          bool drop_remainder) {
  const Sequence sequence{progression_of(records),
                          std::move(order),
                          progression_of(positions),
                          reshuffles,
                          epochs,
                          batch_rows,
                          batch_ends_with_epoch,
                          drop_remainder};
  return sequence.encode();
}

PlannedBatch planned(const Plan& plan, std::uint64_t epoch, std::int64_t step) {
  PlannedBatch batch;
  const std::int64_t position_rows = std::max<std::int64_t>(plan.order().max_rows(), 1);
  compute(static_cast<std::size_t>(plan.options().batch_size * position_rows),
          [&] { plan.batch(*plan.of_epoch(epoch), step, batch); });
  return batch;
}

py::tuple plan_rows(const Plan& plan, std::uint64_t epoch, std::int64_t step) {
  const PlannedBatch batch = planned(plan, epoch, step);
  py::array_t<bool> valid(static_cast<py::ssize_t>(batch.records.size()));
  bool* const out = valid.mutable_data();
  std::fill_n(out, batch.records.size(), false);
  std::fill_n(out, batch.real_rows, true);
  return py::make_tuple(to_array(batch.records), valid);
}

Int64Array plan_indices(const Plan& plan, std::uint64_t epoch, std::int64_t step) {
  if (plan.order().max_rows() > 0) return to_array(planned(plan, epoch, step).records);
  const std::size_t count = plan.row_count(step);
  Int64Array indices(static_cast<py::ssize_t>(count));
  std::int64_t* const out = indices.mutable_data();
  compute(count, [&] {
    plan.write_positions(step, out);
    plan.of_epoch(epoch)->evaluate(out, count, out);
  });
  return indices;
}

// Without padding, for all ranks. Positions are no batches.
Int64Array plan_records_at(const Plan& plan, std::uint64_t epoch, std::int64_t first,
                           std::int64_t last) {
  check_range("last", last, 0, plan.positions());
  check_range("first", first, 0, last);
  const auto order = plan.of_epoch(epoch);
  Int64Array records(last - first);
  std::int64_t* out = records.mutable_data();
  const auto count = static_cast<std::size_t>(last - first);
  compute(count, [&] {
    std::iota(out, out + count, first);
    order->evaluate(out, count, out);
  });
  return records;
}

// For each record of packs: (row, column in each budget, length in each budget, piece).
Int64Array plan_packed(const Plan& plan, std::uint64_t epoch, std::int64_t step) {
  const PlannedBatch batch = planned(plan, epoch, step);
  const std::span<const PackedRecord> packed = batch.packed();
  const std::size_t budgets = plan.order().tokens().size();
  Int64Array result(
      {static_cast<py::ssize_t>(packed.size()), static_cast<py::ssize_t>(2 + 2 * budgets)});
  std::int64_t* out = result.mutable_data();
  for (const PackedRecord& each : packed) {
    *out++ = each.row;
    out = std::copy_n(each.columns.begin(), budgets, out);
    out = std::copy_n(each.lengths.begin(), budgets, out);
    *out++ = each.piece;
  }
  return result;
}

py::array_t<std::uint64_t> plan_draws(const Plan& plan, std::uint64_t epoch, std::int64_t step) {
  return to_array(image_draws(plan, epoch, step, planned(plan, epoch, step)));
}

}  // namespace

void register_order(py::module_& module) {
  module.attr("ORDER_VERSION") = kOrderVersion;
  module.attr("MAX_RECORDS") = kMaxPermutationSize;

  py::class_<Order, std::shared_ptr<Order>>(module, "Order")
      .def_property_readonly("positions", &Order::positions);
  py::class_<InOrder, Order, std::shared_ptr<InOrder>>(module, "InOrder")
      .def(constructor<InOrder, std::int64_t>(), py::arg("num_records"));
  py::class_<Shuffle, Order, std::shared_ptr<Shuffle>>(module, "Shuffle")
      .def(constructor<Shuffle, std::int64_t>(), py::arg("num_records"));
  py::class_<InterleavedOrder, Order, std::shared_ptr<InterleavedOrder>>(module, "InterleavedOrder")
      .def(constructor<InterleavedOrder, std::vector<std::int64_t>, std::int64_t, std::int64_t>(),
           py::arg("file_records"), py::arg("slots"), py::arg("block_records"));
  py::class_<BlockShuffle, Order, std::shared_ptr<BlockShuffle>>(module, "BlockShuffle")
      .def(py::init(&make_block_shuffle), py::arg("num_records"), py::arg("block_records"),
           py::arg("window_blocks"), py::arg("streams"));
  py::class_<ChosenOrder, Order, std::shared_ptr<ChosenOrder>>(module, "ChosenOrder")
      .def(py::init(&make_chosen_order), py::arg("order"), py::arg("indices"),
           py::arg("num_records"));
  py::class_<Weighted, Order, std::shared_ptr<Weighted>>(module, "Weighted")
      .def(py::init(&make_weighted), py::arg("order"), py::arg("weights"));

  py::class_<LengthTable, std::shared_ptr<LengthTable>>(module, "LengthTable")
      .def(py::init(&make_length_table), py::arg("lengths"))
      .def_static(
          "open",
          [](const std::string& path, const PythonReader& reader) {
            const std::shared_ptr<const RecordSource> data = reader.get();
            const WithoutGil without_gil;
            return std::const_pointer_cast<LengthTable>(LengthTable::open(path, &data->shards()));
          },
          py::arg("path"), py::arg("reader"))
      .def_static(
          "reopen",
          [](const std::string& path, std::uint64_t hash) {
            const WithoutGil without_gil;
            return std::const_pointer_cast<LengthTable>(
                LengthTable::open(LengthReference{path, hash}));
          },
          py::arg("path"), py::arg("hash"), "Opens the table of a plan again.")
      .def("__len__", &LengthTable::size)
      .def("lengths", &lengths_of)
      .def_property_readonly(
          "path", [](const LengthTable& table) { return py::bytes(table.reference().path); })
      .def_property_readonly("hash",
                             [](const LengthTable& table) { return table.reference().hash; })
      .def_property_readonly("feature", &LengthTable::feature)
      .def_property_readonly("fingerprint", &LengthTable::fingerprint)
      .def_property_readonly("stamp", &LengthTable::stamp);
  py::class_<LengthBatches, Order, std::shared_ptr<LengthBatches>>(module, "LengthBatches")
      .def(py::init(&make_length_batches), py::arg("table"), py::arg("first"),
           py::arg("num_records"), py::arg("indices"), py::arg("tokens"));
  py::class_<PackedOrder, Order, std::shared_ptr<PackedOrder>>(module, "PackedOrder")
      .def(py::init(&make_packed_order), py::arg("tables"), py::arg("first"),
           py::arg("num_records"), py::arg("indices"), py::arg("tokens"), py::arg("overlong"))
      .def_property_readonly("fill", &fill_of);

  py::class_<Mixture, Order, std::shared_ptr<Mixture>>(module, "Mixture")
      .def(py::init(&make_mixture), py::kw_only(), py::arg("sources"), py::arg("arrangement"),
           py::arg("repeats"), py::arg("length"), py::arg("unit_rows"), py::arg("segments"))
      .def("counts", &Mixture::counts, py::arg("seed"), py::arg("epoch"), py::arg("position"),
           py::call_guard<WithoutGil>())
      .def_static("longest_without_repeats", &Mixture::longest_without_repeats, py::arg("records"),
                  py::arg("weights"), py::arg("unit_rows"), py::arg("max_length"));

  py::class_<Plan>(module, "Plan")
      .def(constructor(&make_plan), py::arg("order"), py::arg("seed"), py::arg("batch_size"),
           py::arg("rank"), py::arg("world"), py::arg("remainder"), py::arg("start"))
      .def_property_readonly("steps", &Plan::steps)
      .def_property_readonly("positions", &Plan::positions)
      .def("rows", &plan_rows, py::arg("epoch"), py::arg("step"))
      .def("indices", &plan_indices, py::arg("epoch"), py::arg("step"))
      .def("packed", &plan_packed, py::arg("epoch"), py::arg("step"),
           "Row, columns, lengths and piece of each record, if positions are packs.")
      .def("draws", &plan_draws, py::arg("epoch"), py::arg("step"),
           "The draw of each row's images, in the order of rows().")
      .def("records_at", &plan_records_at, py::arg("epoch"), py::arg("first"), py::arg("last"))
      .def("position_after", &Plan::position_after, py::arg("step"))
      .def("order_description", &Plan::order_description)
      .def("encode", [](const Plan& self) { return py::bytes(self.encode()); })
      .def_static("decode", &Plan::decode, py::arg("encoded"));

  module.def("encode_sequence", &encode_sequence, py::kw_only(), py::arg("records"),
             py::arg("order"), py::arg("positions"), py::arg("reshuffles"), py::arg("epochs"),
             py::arg("batch_rows"), py::arg("batch_ends_with_epoch"), py::arg("drop_remainder"),
             "A dataset's sequence, for the ops.");
}

}  // namespace tfrfast::python
