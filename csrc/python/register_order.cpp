// Permutation and Plan. Arguments arrive checked for type by tfrfast/_arguments.py.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/order/permutation.h"
#include "core/order/plan.h"
#include "python/register.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

using Int64Array = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;

// Below this the work takes less time than giving up the GIL and taking it back.
constexpr std::size_t kReleaseGilValues = 4096;

template <class Work>
void compute(std::size_t values, Work&& work) {
  if (values < kReleaseGilValues) return work();
  const WithoutGil without_gil;
  work();
}

// Positions as an index has them: negative ones count from the end.
void copy_checked(const std::int64_t* values, std::size_t count, std::int64_t size,
                  std::int64_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t value = values[i] < 0 ? values[i] + size : values[i];
    if (value < 0 || value >= size) {
      throw Error(ErrorKind::out_of_range,
                  "Index " + std::to_string(values[i]) + " (element " + std::to_string(i) +
                      ") is out of range for a permutation of " + std::to_string(size) + ".");
    }
    out[i] = value;
  }
}

template <bool kForward>
Int64Array map_array(const Permutation& permutation, const Int64Array& values) {
  Int64Array result(std::vector<py::ssize_t>(values.shape(), values.shape() + values.ndim()));
  const std::int64_t* in = values.data();
  std::int64_t* out = result.mutable_data();
  const auto count = static_cast<std::size_t>(values.size());
  compute(count, [&] {
    copy_checked(in, count, permutation.size(), out);
    if constexpr (kForward) {
      permutation.evaluate(out, count, out);
    } else {
      permutation.invert(out, count, out);
    }
  });
  return result;
}

Int64Array map_range(const Permutation& permutation, std::int64_t first, std::int64_t count) {
  Int64Array result(count);
  std::int64_t* out = result.mutable_data();
  const auto values = static_cast<std::size_t>(count);
  compute(values, [&] { permutation.evaluate_range(first, values, out); });
  return result;
}

Remainder remainder_named(const std::string& name) {
  if (name == "keep") return Remainder::keep;
  if (name == "drop") return Remainder::drop;
  if (name == "pad") return Remainder::pad;
  throw Error(ErrorKind::invalid,
              "remainder is '" + name + "', but must be 'keep', 'drop' or 'pad'.");
}

Plan make_plan(std::int64_t num_records, std::int64_t batch_size, bool shuffle,
               const std::optional<std::array<std::int64_t, 3>>& blocks, std::uint64_t seed,
               std::int64_t rank, std::int64_t world, const std::string& remainder,
               const std::optional<Int64Array>& indices, std::int64_t start) {
  PlanOptions options;
  options.num_records = num_records;
  options.batch_size = batch_size;
  options.shuffle = blocks ? Shuffle::blocks : shuffle ? Shuffle::exact : Shuffle::none;
  if (blocks) options.blocks = {(*blocks)[0], (*blocks)[1], (*blocks)[2]};
  options.seed = seed;
  options.rank = rank;
  options.world = world;
  options.remainder = remainder_named(remainder);
  if (indices) {
    options.indices = std::make_shared<const std::vector<std::int64_t>>(
        indices->data(), indices->data() + indices->size());
  }
  options.start = start;
  return Plan(std::move(options));
}

py::tuple plan_rows(const Plan& plan, std::uint64_t epoch, std::int64_t step) {
  const std::size_t count = plan.row_count(step);
  Int64Array indices(static_cast<py::ssize_t>(count));
  py::array_t<bool> valid(static_cast<py::ssize_t>(count));
  std::int64_t* out_indices = indices.mutable_data();
  bool* out_valid = valid.mutable_data();
  compute(count, [&] { plan.rows(epoch, step, out_indices, out_valid); });
  return py::make_tuple(indices, valid);
}

Int64Array plan_indices(const Plan& plan, std::uint64_t epoch, std::int64_t step) {
  const std::size_t count = plan.row_count(step);
  Int64Array indices(static_cast<py::ssize_t>(count));
  std::int64_t* out = indices.mutable_data();
  compute(count, [&] { plan.rows(epoch, step, out, nullptr); });
  return indices;
}

// The plan's own memory, read-only; the array keeps the plan alive.
py::object plan_chosen(const py::object& self) {
  const auto& indices = self.cast<const Plan&>().options().indices;
  if (!indices) return py::none();
  Int64Array view(static_cast<py::ssize_t>(indices->size()), indices->data(), self);
  view.attr("flags").attr("writeable") = false;
  return view;
}

}  // namespace

void register_order(py::module_& module) {
  module.attr("ORDER_VERSION") = kOrderVersion;
  module.attr("MAX_RECORDS") = kMaxPermutationSize;

  py::class_<Permutation>(module, "Permutation")
      .def(py::init<std::int64_t, std::uint64_t, std::uint64_t>(), py::arg("size"), py::arg("seed"),
           py::arg("epoch"))
      .def("at", &Permutation::at, py::arg("position"))
      .def("inverse_at", &Permutation::inverse, py::arg("record"))
      .def("map", &map_array<true>, py::arg("positions"))
      .def("inverse", &map_array<false>, py::arg("records"))
      .def("map_range", &map_range, py::arg("first"), py::arg("count"));

  py::class_<Plan>(module, "Plan")
      .def(py::init(&make_plan), py::arg("num_records"), py::arg("batch_size"), py::arg("shuffle"),
           py::arg("blocks"), py::arg("seed"), py::arg("rank"), py::arg("world"),
           py::arg("remainder"), py::arg("indices"), py::arg("start"))
      .def_property_readonly("steps", &Plan::steps)
      .def_property_readonly("positions", &Plan::positions)
      .def_property_readonly("chosen", &plan_chosen)
      .def("rows", &plan_rows, py::arg("epoch"), py::arg("step"))
      .def("indices", &plan_indices, py::arg("epoch"), py::arg("step"))
      .def("position_after", &Plan::position_after, py::arg("step"))
      .def("order_description", &Plan::order_description);
}

}  // namespace tfrfast::python
