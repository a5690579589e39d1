// Summarises many values, for `tfrfast stats`.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/example/number_counts.h"
#include "core/example/value_summary.h"
#include "python/classes.h"
#include "python/register.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

template <class T>
using SummedArray = py::array_t<T, py::array::c_style | py::array::forcecast>;

// Returns the numbers of values, NaN, infinities and minus infinities; the sums of numbers and of
// squares, as integers in little-endian bytes, in units of 2^-149 and 2^-298 for floats; and the
// range.
py::tuple sums_facts(NumberSums sums, bool is_float) {
  const auto whole = [](ExactSum& sum) {
    sum.carry();
    std::uint8_t bytes[ExactSum::kBytes];
    sum.put(bytes);
    return py::bytes(reinterpret_cast<const char*>(bytes), sizeof bytes);
  };
  py::object least, most;
  if (is_float) {
    least = py::float_(sums.min_float);
    most = py::float_(sums.max_float);
  } else {
    least = py::int_(sums.min_int);
    most = py::int_(sums.max_int);
  }
  return py::make_tuple(sums.count, sums.not_numbers, sums.infinite, sums.minus_infinite,
                        whole(sums.sum), whole(sums.squares), least, most);
}

// Numbers of one kind, summed for each position of a row. Many threads may add to it.
class PythonNumberSums {
 public:
  explicit PythonNumberSums(std::size_t positions) : sums_(positions) {
    if (positions == 0) throw Error(ErrorKind::invalid, "A row has at least one number.");
  }
  void add_ints(const SummedArray<std::int64_t>& values) { add(values); }
  void add_floats(const SummedArray<float>& values) { add(values); }
  py::list facts(bool is_float) const {
    const std::vector<NumberSums> sums = [&] {
      const WithoutGil without_gil;
      const std::lock_guard lock(mutex_);
      return sums_;
    }();
    py::list all;
    for (const NumberSums& each : sums) all.append(sums_facts(each, is_float));
    return all;
  }

 private:
  template <class T>
  void add(const SummedArray<T>& values) {
    const std::span<const T> all{values.data(), static_cast<std::size_t>(values.size())};
    const WithoutGil without_gil;
    const std::lock_guard lock(mutex_);
    std::size_t position = 0;
    for (const T value : all) {
      sums_[position].add(value);
      if (++position == sums_.size()) position = 0;
    }
  }

  mutable std::mutex mutex_;
  std::vector<NumberSums> sums_;
};

// Many threads may add to it.
class PythonNumberCounts {
 public:
  PythonNumberCounts(unsigned bits, unsigned pass, std::vector<std::vector<std::uint64_t>> prefixes)
      : counts_(bits, pass, std::move(prefixes)) {}
  void add_ints(const SummedArray<std::int64_t>& values) { add(values); }
  void add_floats(const SummedArray<float>& values) { add(values); }
  // An array with a row for each prefix of each position.
  py::array_t<std::uint64_t> counts() {
    const std::lock_guard lock(mutex_);
    const auto tables = static_cast<py::ssize_t>(counts_.tables());
    py::array_t<std::uint64_t> all({tables, py::ssize_t{1} << counts_.bits()});
    std::copy(counts_.counts().begin(), counts_.counts().end(), all.mutable_data());
    return all;
  }

 private:
  template <class T>
  void add(const SummedArray<T>& values) {
    const std::span<const T> all{values.data(), static_cast<std::size_t>(values.size())};
    const WithoutGil without_gil;
    const std::lock_guard lock(mutex_);
    counts_.add(all);
  }

  std::mutex mutex_;
  NumberCounts counts_;
};

// A summary of values of one kind. Many threads may add values.
class PythonValueSummary {
 public:
  void add_ints(const SummedArray<std::int64_t>& values) { add_numbers(values); }
  void add_floats(const SummedArray<float>& values) { add_numbers(values); }

  void add_strings(const SummedArray<std::uint8_t>& data,
                   const SummedArray<std::int64_t>& offsets) {
    // Copy, then check, then use the copy.
    const std::vector<std::int64_t> bounds(offsets.data(), offsets.data() + offsets.size());
    const std::uint8_t* const bytes = data.data();
    const std::int64_t size = data.size();
    const WithoutGil without_gil;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      if (bounds[i] < 0 || bounds[i] > bounds[i + 1] || bounds[i + 1] > size) {
        throw Error(ErrorKind::invalid, "The offsets of the strings do not lie within their data.");
      }
      summary_.add(
          WireBytes{bytes + bounds[i], static_cast<std::size_t>(bounds[i + 1] - bounds[i])});
    }
  }

  py::dict facts(std::size_t frequent, const std::string& kind) const {
    py::dict all;
    all["numbers"] = sums_facts(summary_.numbers(), kind == "float32");
    all["distinct"] = summary_.distinct();
    all["exact"] = summary_.is_exact();
    all["uncounted"] = summary_.uncounted();
    py::list values;
    for (const ValueSummary::Frequent& each : summary_.most_frequent(frequent)) {
      py::object value;
      if (kind == "int64") {
        value = py::int_(static_cast<std::int64_t>(each.bits));
      } else if (kind == "float32") {
        value = py::float_(std::bit_cast<float>(static_cast<std::uint32_t>(each.bits)));
      } else {
        value = py::bytes(each.string);
      }
      values.append(py::make_tuple(value, each.count));
    }
    all["frequent"] = values;
    return all;
  }

 private:
  template <class T>
  void add_numbers(const SummedArray<T>& values) {
    const std::span<const T> all{values.data(), static_cast<std::size_t>(values.size())};
    const WithoutGil without_gil;
    const std::lock_guard lock(mutex_);
    summary_.add(all);
  }

  std::mutex mutex_;
  ValueSummary summary_;
};

}  // namespace

void register_summary(py::module_& module) {
  py::class_<PythonNumberSums>(module, "NumberSums")
      .def(constructor<PythonNumberSums, std::size_t>(), py::arg("positions"))
      .def("add_ints", &PythonNumberSums::add_ints, py::arg("values"))
      .def("add_floats", &PythonNumberSums::add_floats, py::arg("values"))
      .def("facts", &PythonNumberSums::facts, py::arg("is_float"));
  py::class_<PythonNumberCounts>(module, "NumberCounts")
      .def(constructor<PythonNumberCounts, unsigned, unsigned,
                       std::vector<std::vector<std::uint64_t>>>(),
           py::arg("bits"), py::arg("pass_"), py::arg("prefixes"))
      .def("add_ints", &PythonNumberCounts::add_ints, py::arg("values"))
      .def("add_floats", &PythonNumberCounts::add_floats, py::arg("values"))
      .def("counts", &PythonNumberCounts::counts);
  py::class_<PythonValueSummary>(module, "ValueSummary")
      .def(constructor<PythonValueSummary>())
      .def("add_ints", &PythonValueSummary::add_ints, py::arg("values"))
      .def("add_floats", &PythonValueSummary::add_floats, py::arg("values"))
      .def("add_strings", &PythonValueSummary::add_strings, py::arg("data"), py::arg("offsets"))
      .def("facts", &PythonValueSummary::facts, py::arg("frequent"), py::arg("kind"));
}

}  // namespace tfrfast::python
