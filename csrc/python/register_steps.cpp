// Builds step files, and reads the steps of episodes.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/numbering.h"
#include "core/read/bad_row.h"
#include "core/steps/step_file.h"
#include "core/steps/step_part.h"
#include "core/steps/step_reader.h"
#include "core/steps/step_spec.h"
#include "core/steps/step_tables.h"
#include "python/arrays.h"
#include "python/classes.h"
#include "python/python_reader.h"
#include "python/register.h"
#include "python/text.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

// Names are bytes in files, and text in Python.
using AxisFeatures = std::map<std::string, std::uint32_t>;
// Feature, before, after, stride, pad.
using Window = std::tuple<std::string, std::uint32_t, std::uint32_t, std::uint32_t, std::string>;
// New name, feature, seed, min and max steps.
using Later = std::tuple<std::string, std::string, std::uint64_t, std::uint32_t, std::uint32_t>;

// New name, features, seed.
using Choice = std::tuple<std::string, std::vector<std::string>, std::uint64_t>;

py::bytes encode_axis(const std::vector<std::string>& prefixes, const AxisFeatures& features) {
  StepAxis made;
  made.prefixes = prefixes;
  made.features.insert(features.begin(), features.end());
  return py::bytes(made.encode());
}

std::vector<std::string> names_of_axis(std::string_view encoded) {
  const StepAxis axis = StepAxis::decode(encoded);
  std::vector<std::string> names(axis.prefixes.begin(), axis.prefixes.end());
  for (const auto& [name, values] : axis.features) names.push_back(name);
  return names;
}

WireBytes wire(std::string_view bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

// Returns the layout for records like this sample, or None if the sample has no steps. Without a
// sample, returns a layout for any record.
std::optional<py::bytes> layout_for(std::string_view encoded_axis,
                                    const std::optional<std::string_view>& sample,
                                    const std::vector<std::string>& renamed) {
  StepLayout layout{StepAxis::decode(encoded_axis), {}};
  if (sample) {
    if (cut_record(wire(*sample), layout.axis).steps == 0) return {};
    layout = StepLayout::of(layout.axis, wire(*sample));
  }
  layout.renamed.insert(renamed.begin(), renamed.end());
  return py::bytes(layout.encode());
}

class PythonStepPartMaker {
 public:
  explicit PythonStepPartMaker(std::string_view encoded) : maker_(StepLayout::decode(encoded)) {}

  // Adds the records from `begin` to `end`, or about `max_bytes`, and returns the next record's
  // number.
  std::uint64_t add(const PythonReader& open, std::uint64_t begin, std::uint64_t end,
                    std::uint64_t max_bytes) {
    const std::shared_ptr<const Reader> reader = open.frames();
    const WithoutGil without_gil;
    const std::uint64_t stop = reader->range_end(begin, max_bytes, end - begin);
    const RecordSource::Range range = reader->read_range(begin, stop);
    if (range.error) throw *range.error;
    std::size_t row = 0;
    for (std::uint64_t record = begin; record < stop; ++record) {
      const bool is_there = row < range.batch->size() &&
                            static_cast<std::uint64_t>(range.batch->indices()[row]) == record;
      if (!is_there) {
        maker_.add_damaged();
        continue;
      }
      maker_.add((*range.batch)[row++], [&] {
        std::string where = describe(reader->locate(record));
        where[0] = 'R';
        return where;
      });
    }
    return range.next;
  }

  py::bytes finish() {
    const std::string encoded = [&] {
      const WithoutGil without_gil;
      return maker_.finish().encode();
    }();
    return py::bytes(encoded);
  }

 private:
  StepPartMaker maker_;
};

class PythonStepTables {
 public:
  explicit PythonStepTables(std::string_view encoded_axis)
      : tables_(StepAxis::decode(encoded_axis)) {}

  void append(std::string_view part) {
    const WithoutGil without_gil;
    tables_.append(StepPart::decode(part));
  }
  std::uint64_t step_count() const { return tables_.step_count(); }
  StepFileBytes finish(std::uint64_t fingerprint, std::uint64_t stamp) {
    const WithoutGil without_gil;
    return std::move(tables_).finish(fingerprint, stamp);
  }

 private:
  StepTables tables_;
};

// Returns at most `count` bytes from `at` on.
py::bytes read_step_file(const StepFileBytes& file, std::uint64_t at, std::uint64_t count) {
  at = std::min(at, file.size());
  std::string bytes(static_cast<std::size_t>(std::min(count, file.size() - at)), '\0');
  file.read(at, {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()});
  return py::bytes(bytes);
}

StepWindow::Pad pad_named(const std::string& name) {
  if (name == "repeat") return StepWindow::Pad::repeat;
  if (name == "zeros") return StepWindow::Pad::zeros;
  return StepWindow::Pad::leave_out;
}

std::unique_ptr<PythonReader> open_steps(const PythonReader& open, const std::string& path,
                                         std::uint64_t stamp, const std::vector<Window>& windows,
                                         const std::vector<Later>& laters,
                                         const std::vector<Choice>& choices,
                                         const std::map<std::string, std::string>& names,
                                         const std::map<std::string, std::string>& absent) {
  const std::shared_ptr<const Reader> reader = open.frames();
  StepOptions options;
  options.names.insert(names.begin(), names.end());
  options.absent.insert(absent.begin(), absent.end());
  for (const auto& [name, before, after, stride, pad] : windows) {
    options.windows[name] = {before, after, stride, pad_named(pad)};
  }
  for (const auto& [name, of, seed, min_steps, max_steps] : laters) {
    options.laters[name] = {of, seed, min_steps, max_steps};
  }
  for (const auto& [name, of, seed] : choices) options.choices[name] = {of, seed};
  const WithoutGil without_gil;
  return std::make_unique<PythonReader>(StepSpec{path, stamp, std::move(options)}.open(reader));
}

std::shared_ptr<const StepReader> steps_of(const PythonReader& open) {
  auto reader = std::dynamic_pointer_cast<const StepReader>(open.get());
  if (reader == nullptr) throw Error(ErrorKind::invalid, "This reader has no steps.");
  return reader;
}

// Returns the same steps with only these features, with only the chosen steps, or each with its own
// values in place of windows. A second choice of steps replaces the first.
std::unique_ptr<PythonReader> other_steps(const PythonReader& open,
                                          const std::optional<std::vector<std::string>>& columns,
                                          std::optional<std::string> chosen, bool has_windows) {
  const auto reader = steps_of(open);
  StepOptions options = reader->step_options();
  if (columns) options.columns.emplace(columns->begin(), columns->end());
  if (chosen) options.chosen = std::move(chosen);
  if (!has_windows) options.without_windows = true;
  const WithoutGil without_gil;
  return std::make_unique<PythonReader>(reader->with(std::move(options)));
}

// Returns the record of a step, and the step's number in the record.
py::tuple place_of_step(const PythonReader& open, std::int64_t number) {
  const auto reader = steps_of(open);
  const auto count = static_cast<std::int64_t>(reader->record_count());
  const StepReader::StepOrigin found =
      reader->place(static_cast<std::uint64_t>(number_below(count, number, "Step")));
  return py::make_tuple(found.record, found.step);
}

py::array first_steps_of(const PythonReader& open) {
  const auto reader = steps_of(open);
  const std::vector<std::uint64_t>& all = reader->first_steps();
  return filled_array<std::int64_t>(
      all.size(), [&](std::int64_t* out) { std::copy(all.begin(), all.end(), out); });
}

// Returns the steps of all records of an open step file, as a part of a file of more records.
py::bytes part_of_steps(const PythonReader& open) {
  const auto reader = steps_of(open);
  const std::string encoded = [&] {
    const WithoutGil without_gil;
    return reader->file().part().encode();
  }();
  return py::bytes(encoded);
}

// Returns the layout of an open step file's records, for further records of the file.
py::bytes layout_of_steps(const PythonReader& open, const std::vector<std::string>& renamed) {
  const auto reader = steps_of(open);
  StepLayout layout{reader->file().axis(), {}};
  for (const StepFeature& each : reader->file().features()) {
    const bool is_chosen = list_kind_of(each.form) == ListKind::bytes || is_listed(each.form);
    if (is_chosen && each.run_steps > 1) layout.runs[each.name] = each.run_steps;
  }
  layout.renamed.insert(renamed.begin(), renamed.end());
  return py::bytes(layout.encode());
}

py::dict step_facts(const PythonReader& open) {
  const auto reader = steps_of(open);
  const StepFile& file = reader->file();
  py::list features;
  for (const StepFeature& each : file.features()) {
    features.append(py::make_tuple(to_text(each.name), name_of(list_kind_of(each.form)),
                                   each.values, each.width, each.run_steps));
  }
  // For each column: name, kind, number of values in a step, whether it has a window, and the
  // number of values of its /valid.
  py::list columns;
  for (const StepContents::Feature& each : reader->features()) {
    columns.append(py::make_tuple(to_text(each.name), name_of(list_kind_of(each.in_file->form)),
                                  each.in_file->values, each.window.has_value(),
                                  each.valid_count()));
  }
  py::dict facts;
  facts["path"] = to_text(file.path());
  facts["axis"] = py::bytes(file.axis().encode());
  facts["num_bytes"] = file.bytes();
  facts["num_records"] = file.first_steps().size() - 1;
  facts["num_steps"] = file.first_steps().back();
  facts["left_out"] = file.left_out();
  facts["features"] = features;
  facts["columns"] = columns;
  return facts;
}

}  // namespace

void register_steps(py::module_& module) {
  module.def("step_axis", &encode_axis, py::arg("prefixes"), py::arg("features"));
  module.def("step_axis_names", &names_of_axis, py::arg("axis"));
  module.def("step_layout", &layout_for, py::arg("axis"), py::arg("sample"), py::arg("renamed"));
  py::class_<PythonStepPartMaker>(module, "StepPartMaker")
      .def(constructor<PythonStepPartMaker, std::string_view>(), py::arg("layout"))
      .def("add", &PythonStepPartMaker::add, py::arg("reader"), py::arg("begin"), py::arg("end"),
           py::arg("max_bytes"))
      .def("finish", &PythonStepPartMaker::finish);
  py::class_<StepFileBytes>(module, "StepFileBytes")
      .def("read", &read_step_file, py::arg("at"), py::arg("count"));
  py::class_<PythonStepTables>(module, "StepTables")
      .def(constructor<PythonStepTables, std::string_view>(), py::arg("axis"))
      .def("append", &PythonStepTables::append, py::arg("part"))
      .def("finish", &PythonStepTables::finish, py::arg("fingerprint"), py::arg("stamp"))
      .def_property_readonly("num_steps", &PythonStepTables::step_count);
  module.def("open_steps", &open_steps, py::arg("reader"), py::arg("path"), py::arg("stamp"),
             py::arg("windows"), py::arg("laters"), py::arg("choices"), py::arg("names"),
             py::arg("absent"));
  module.def("other_steps", &other_steps, py::arg("reader"), py::kw_only(),
             py::arg("columns") = py::none(), py::arg("chosen") = py::none(),
             py::arg("has_windows") = true,
             "The same steps with other options. What is not given stays.");
  module.def("step_file_layout", &layout_of_steps, py::arg("reader"), py::arg("renamed"));
  module.def("step_part", &part_of_steps, py::arg("reader"));
  module.def("step_place", &place_of_step, py::arg("reader"), py::arg("number"));
  module.def("first_steps", &first_steps_of, py::arg("reader"));
  module.def("step_facts", &step_facts, py::arg("reader"));
}

}  // namespace tfrfast::python
