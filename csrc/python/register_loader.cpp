#include "core/load/loader.h"

#include "python/columns.h"
#include "python/open_reader.h"
#include "python/register.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

// How long Ctrl-C may have to wait.
constexpr double kSecondsBetweenSignals = 0.1;

// Joins its workers, when it goes, without holding the GIL.
class PythonLoader {
 public:
  PythonLoader(const OpenReader& reader, const Plan& plan, unsigned threads, unsigned prefetch,
               std::shared_ptr<FeaturePlan> features)
      : features_(std::move(features)),
        loader_(std::make_unique<Loader>(reader.get(), plan.options(),
                                         LoaderOptions{threads, prefetch}, features_)) {}
  ~PythonLoader() { close(); }

  void close() {
    const py::gil_scoped_release release;
    loader_ = nullptr;
  }

  Loader& get() const {
    if (loader_ == nullptr) throw Error(ErrorKind::closed, "This loader has been closed.");
    return *loader_;
  }

  // A RecordBatch, or (columns, indices, valid).
  py::object to_python(LoadedBatch batch) const {
    if (features_ == nullptr) return py::cast(std::move(batch.records));
    const auto rows = static_cast<py::ssize_t>(batch.rows);
    return py::make_tuple(python::to_python(std::move(batch.columns), *features_),
                          own<std::int64_t>(std::move(batch.indices), {rows}),
                          own<bool>(std::move(batch.valid), {rows}));
  }

 private:
  const std::shared_ptr<FeaturePlan> features_;
  std::unique_ptr<Loader> loader_;
};

// The next batch, or None at the end of the epoch.
py::object next(const PythonLoader& self) {
  Loader& loader = self.get();
  LoadedBatch batch;
  Loader::Wait wait = loader.wait_next(0, &batch);
  while (wait == Loader::Wait::timed_out) {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    const py::gil_scoped_release release;
    wait = loader.wait_next(kSecondsBetweenSignals, &batch);
  }
  if (wait == Loader::Wait::epoch_ended) return py::none();
  return self.to_python(std::move(batch));
}

py::dict stats(const PythonLoader& self) {
  const LoaderStats sums = self.get().stats();
  py::dict result;
  result["records"] = sums.records;
  result["bytes"] = sums.bytes;
  result["batches"] = sums.batches;
  result["consumer_waited_s"] = sums.consumer_waited_s;
  result["workers_waited_s"] = sums.workers_waited_s;
  result["read_ahead_bytes"] = sums.read_ahead_bytes;
  return result;
}

}  // namespace

void register_loader(py::module_& module) {
  py::class_<PythonLoader>(module, "Loader")
      .def(py::init<const OpenReader&, const Plan&, unsigned, unsigned,
                    std::shared_ptr<FeaturePlan>>(),
           py::arg("reader"), py::arg("plan"), py::arg("threads"), py::arg("prefetch"),
           py::arg("features"))
      .def("next", &next)
      .def(
          "seek",
          [](const PythonLoader& self, std::uint64_t epoch, std::int64_t position) {
            Loader& loader = self.get();
            const py::gil_scoped_release release;
            loader.seek(epoch, position);
          },
          py::arg("epoch"), py::arg("position"))
      .def("next_epoch",
           [](const PythonLoader& self) {
             Loader& loader = self.get();
             const py::gil_scoped_release release;
             loader.next_epoch();
           })
      .def("close", &PythonLoader::close)
      .def("stats", &stats)
      .def_property_readonly("epoch", [](const PythonLoader& self) { return self.get().epoch(); })
      .def_property_readonly("step", [](const PythonLoader& self) { return self.get().step(); })
      .def_property_readonly("position",
                             [](const PythonLoader& self) { return self.get().position(); });
}

}  // namespace tfrfast::python
