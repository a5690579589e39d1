// Summarises many values, for `tfrfast stats`.
#include <pybind11/stl.h>

#include <bit>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/example/number_sums.h"
#include "core/example/value_summary.h"
#include "python/arrays.h"
#include "python/byte_view.h"
#include "python/classes.h"
#include "python/register.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

// Returns the numbers of values, NaN, infinities and minus infinities; the sums of numbers and of
// squares, as integers in little-endian bytes, in units of 2^-149 and 2^-298 for floats; and the
// range.
py::tuple sums_facts(NumberSums sums, bool is_float) {
  const auto whole = [](ExactSum& sum) {
    sum.carry();
    std::uint8_t bytes[ExactSum::kBytes];
    sum.put(bytes);
    return to_bytes(bytes);
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

// Adds numbers up. Many threads may call it at once.
template <class Total>
class Summed {
 public:
  template <class... Arguments>
  explicit Summed(Arguments&&... arguments) : total_(std::forward<Arguments>(arguments)...) {}
  void add_ints(const Numbers<std::int64_t>& values) { add(values); }
  void add_floats(const Numbers<float>& values) { add(values); }

 protected:
  mutable std::mutex mutex_;
  Total total_;

 private:
  template <class T>
  void add(const Numbers<T>& values) {
    const std::span<const T> all = span_of(values);
    const WithoutGil without_gil;
    const std::lock_guard lock(mutex_);
    total_.add(all);
  }
};

// Sums for each position of a row.
struct RowSums {
  explicit RowSums(std::size_t positions) : sums(positions) {
    if (positions == 0) throw Error(ErrorKind::invalid, "A row has at least one number.");
  }
  template <class T>
  void add(std::span<const T> values) {
    std::size_t position = 0;
    for (const T value : values) {
      sums[position].add(value);
      if (++position == sums.size()) position = 0;
    }
  }
  std::vector<NumberSums> sums;
};

class PythonNumberSums : public Summed<RowSums> {
 public:
  using Summed::Summed;
  py::list facts(bool is_float) const {
    const std::vector<NumberSums> sums = [&] {
      const WithoutGil without_gil;
      const std::lock_guard lock(mutex_);
      return total_.sums;
    }();
    py::list all;
    for (const NumberSums& each : sums) all.append(sums_facts(each, is_float));
    return all;
  }
};

// A summary of values of one kind.
class PythonValueSummary : public Summed<ValueSummary> {
 public:
  void add_strings(const Numbers<std::uint8_t>& data, const Numbers<std::int64_t>& offsets) {
    const ByteStrings strings("String", data, offsets);
    const WithoutGil without_gil;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < strings.size(); ++i) total_.add(strings[i]);
  }

  py::dict facts(std::size_t frequent, const std::string& kind) const {
    const ValueSummary total = [&] {
      const WithoutGil without_gil;
      const std::lock_guard lock(mutex_);
      return total_;
    }();
    py::dict all;
    all["numbers"] = sums_facts(total.numbers(), kind == "float32");
    all["distinct"] = total.distinct();
    all["exact"] = total.is_exact();
    all["uncounted"] = total.uncounted();
    py::list values;
    for (const ValueSummary::Frequent& each : total.most_frequent(frequent)) {
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
};

}  // namespace

void register_summary(py::module_& module) {
  py::class_<PythonNumberSums>(module, "NumberSums")
      .def(constructor<PythonNumberSums, std::size_t>(), py::arg("positions"))
      .def("add_ints", &PythonNumberSums::add_ints, py::arg("values"))
      .def("add_floats", &PythonNumberSums::add_floats, py::arg("values"))
      .def("facts", &PythonNumberSums::facts, py::arg("is_float"));
  py::class_<PythonValueSummary>(module, "ValueSummary")
      .def(constructor<PythonValueSummary>())
      .def("add_ints", &PythonValueSummary::add_ints, py::arg("values"))
      .def("add_floats", &PythonValueSummary::add_floats, py::arg("values"))
      .def("add_strings", &PythonValueSummary::add_strings, py::arg("data"), py::arg("offsets"))
      .def("facts", &PythonValueSummary::facts, py::arg("frequent"), py::arg("kind"));
}

}  // namespace tfrfast::python
