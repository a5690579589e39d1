#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/read/record_batch.h"
#include "python/arrays.h"
#include "python/register.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

using Batch = std::shared_ptr<RecordBatch>;

std::size_t row_of(const RecordBatch& batch, py::ssize_t row) {
  const auto rows = static_cast<py::ssize_t>(batch.size());
  if (row < -rows || row >= rows) {
    throw py::index_error("Row " + std::to_string(row) + " does not exist: the batch has " +
                          std::to_string(rows) + " rows.");
  }
  return static_cast<std::size_t>(row < 0 ? row + rows : row);
}

py::bytes payload_of(const RecordBatch& batch, std::size_t row) {
  const auto payload = batch[row];
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

py::array_t<std::uint8_t> data_of(const Batch& batch) {
  return array_over(batch->data(), batch->data_bytes(), batch);
}

py::object view_of(const Batch& batch, py::ssize_t row) {
  const auto payload = (*batch)[row_of(*batch, row)];
  const py::array_t<std::uint8_t> array = array_over(payload.data(), payload.size(), batch);
  const auto view = py::reinterpret_steal<py::object>(PyMemoryView_FromObject(array.ptr()));
  if (!view) throw py::error_already_set();
  return view.attr("toreadonly")();
}

py::list list_of(const RecordBatch& batch) {
  py::list all(batch.size());
  for (std::size_t row = 0; row < batch.size(); ++row) all[row] = payload_of(batch, row);
  return all;
}

template <class T>
using Numbers = py::array_t<T, py::array::c_style | py::array::forcecast>;

Batch batch_from_parts(const Numbers<std::uint8_t>& data, const Numbers<std::int64_t>& offsets,
                       const Numbers<std::int64_t>& indices, const Numbers<bool>& valid) {
  const py::ssize_t rows = indices.size();
  bool fits = offsets.size() == rows + 1 && valid.size() == rows && offsets.data()[0] == 0 &&
              offsets.data()[rows] == data.size();
  for (py::ssize_t row = 0; fits && row < rows; ++row) {
    fits = offsets.data()[row] <= offsets.data()[row + 1];
  }
  if (!fits) {
    throw Error(ErrorKind::invalid,
                "Offsets must ascend from 0 to the number of bytes, one more than there are rows.");
  }
  auto batch = std::make_shared<RecordBatch>(static_cast<std::size_t>(rows));
  std::copy_n(offsets.data(), rows + 1, batch->offsets());
  std::copy_n(indices.data(), rows, batch->indices());
  std::copy_n(valid.data(), rows, batch->valid());
  batch->allocate_data();
  if (data.size() != 0) std::memcpy(batch->data(), data.data(), batch->data_bytes());
  return batch;
}

}  // namespace

void register_record_batch(py::module_& module) {
  py::class_<RecordBatch, Batch>(module, "RecordBatch",
                                 "Many records side by side: `data[offsets[i]:offsets[i + 1]]`.")
      .def(py::init(&batch_from_parts), py::arg("data"), py::arg("offsets"), py::arg("indices"),
           py::arg("valid"))
      .def("__len__", &RecordBatch::size)
      .def("__getitem__", [](const RecordBatch& batch,
                             py::ssize_t row) { return payload_of(batch, row_of(batch, row)); })
      .def("__iter__",
           [](const py::object& batch) {
             return py::reinterpret_steal<py::object>(PySeqIter_New(batch.ptr()));
           })
      .def("view", &view_of, py::arg("row"),
           "The record as a memoryview, without a copy; it keeps the batch's memory alive.")
      .def("tolist", &list_of, "All records as a list of bytes.")
      .def_property_readonly("data", &data_of, "All payloads, one after the other (uint8).")
      .def_property_readonly(
          "offsets",
          [](const Batch& batch) { return array_over(batch->offsets(), batch->size() + 1, batch); },
          "Where each payload begins in `data`, and where the last one ends (int64).")
      .def_property_readonly(
          "indices",
          [](const Batch& batch) { return array_over(batch->indices(), batch->size(), batch); },
          "The records' numbers (int64).")
      .def_property_readonly(
          "valid",
          [](const Batch& batch) { return array_over(batch->valid(), batch->size(), batch); },
          "False for rows that are padding (bool).")
      .def("__reduce__",
           [](const py::object& self) {
             return py::make_tuple(py::type::of(self),
                                   py::make_tuple(self.attr("data"), self.attr("offsets"),
                                                  self.attr("indices"), self.attr("valid")));
           })
      .def("__repr__", [](const RecordBatch& batch) {
        return "RecordBatch(" + std::to_string(batch.size()) + " records, " +
               std::to_string(batch.data_bytes()) + " bytes)";
      });
}

}  // namespace tfrfast::python
