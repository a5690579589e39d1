#include <atomic>
#include <memory>
#include <vector>

#include "core/load/image_draws.h"
#include "core/load/loader.h"

#include "python/classes.h"
#include "python/columns.h"
#include "python/python_reader.h"
#include "python/register.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

// Ctrl-C may have to wait this long.
constexpr double kSecondsBetweenSignals = 0.1;

py::tuple batch_to_python(LoadedBatch batch, const FeatureSchema& features) {
  const auto rows = static_cast<py::ssize_t>(batch.rows);
  return py::make_tuple(python::to_python(std::move(batch.columns), features),
                        own<std::int64_t>(std::move(batch.indices), {rows}),
                        own<bool>(std::move(batch.valid), {rows}));
}

// When the next delivered batches were made. Guarded by the GIL, which fork() finds free.
struct TimedBatches {
  std::size_t most = 0;
  std::vector<BatchTimes> times;
};

class PythonLoader;

// The state of a `for` loop.
class PythonLoaderPass {
 public:
  explicit PythonLoaderPass(py::object loader);

  // Returns the next batch, or None at the end. A batch is a RecordBatch, or (columns, indices,
  // valid).
  py::object next();

 private:
  const py::object owner_;  // owns the loader
  PythonLoader& loader_;
  const std::shared_ptr<LoaderPass> pass_;
};

// The destructor stops the workers without the GIL.
class PythonLoader {
 public:
  PythonLoader(const PythonReader& reader, const Plan& plan, unsigned threads, unsigned prefetch,
               std::shared_ptr<FeatureSchema> features, const PythonLoader* counts_with)
      : features_(std::move(features)),
        loader_(reader.get(), plan.options(), LoaderOptions{threads, prefetch}, features_,
                counts_with == nullptr ? nullptr : counts_with->loader_.counters()) {}
  ~PythonLoader() { close(); }

  Loader& core() { return loader_; }

  std::shared_ptr<LoaderPass> begin() {
    const WithoutGil without_gil;
    return loader_.begin();
  }

  void seek(std::uint64_t epoch, std::int64_t position) {
    const WithoutGil without_gil;
    loader_.seek(epoch, position);
  }

  void close() {
    const WithoutGil without_gil;
    loader_.close();
  }

  // Notes when the next `most` batches were made. Replaces an earlier list, which keeps its times.
  std::shared_ptr<TimedBatches> time_batches(std::size_t most) {
    timed_ = std::make_shared<TimedBatches>(TimedBatches{most, {}});
    loader_.counters()->is_timed = true;
    return timed_;
  }

  void note(const BatchTimes& times) {
    if (timed_ == nullptr) return;
    if (times.end != 0) timed_->times.push_back(times);
    if (timed_->times.size() < timed_->most) return;
    loader_.counters()->is_timed = false;
    timed_ = nullptr;
  }

  py::object to_python(LoadedBatch batch) const {
    if (features_ == nullptr) return py::cast(std::move(batch.records));
    return batch_to_python(std::move(batch), *features_);
  }

 private:
  const std::shared_ptr<FeatureSchema> features_;
  Loader loader_;
  std::shared_ptr<TimedBatches> timed_;  // null unless batches are timed
};

PythonLoaderPass::PythonLoaderPass(py::object loader)
    : owner_(std::move(loader)), loader_(owner_.cast<PythonLoader&>()), pass_(loader_.begin()) {}

py::object PythonLoaderPass::next() {
  Loader& loader = loader_.core();
  LoadedBatch batch;
  Loader::Wait wait = loader.poll_next(*pass_, &batch);
  while (wait == Loader::Wait::timed_out) {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    const WithoutGil without_gil;
    wait = loader.wait_next(*pass_, kSecondsBetweenSignals, &batch);
  }
  switch (wait) {
    case Loader::Wait::ready:
      loader_.note(batch.times);
      return loader_.to_python(std::move(batch));
    case Loader::Wait::replaced:
      throw std::runtime_error("Another iteration of this loader has begun; this one has ended.");
    case Loader::Wait::moved:
      throw std::runtime_error(
          "set_epoch(), change_weights() or load_state_dict() has moved this loader; this "
          "iteration "
          "has ended. "
          "The next one begins where the loader is now.");
    case Loader::Wait::pass_ended:
    case Loader::Wait::timed_out:
      break;
  }
  return py::none();
}

// The columns, record numbers and real rows of one batch of packs.
py::tuple load_packed(const PythonReader& reader, const Plan& plan, std::uint64_t epoch,
                      std::int64_t step, const std::shared_ptr<FeatureSchema>& features) {
  const std::shared_ptr<const RecordSource> source = reader.get();
  LoadedBatch batch = [&] {
    const WithoutGil without_gil;
    static const std::atomic<bool> never{false};
    PlannedBatch planned;
    plan.batch(*plan.of_epoch(epoch), step, planned);
    const std::vector<std::uint64_t> draws = image_draws(plan, epoch, step, planned);
    return BatchWork(source, features).load(planned, never, epoch, draws);
  }();
  return batch_to_python(std::move(batch), *features);
}

// Converts a Loader::Place to (epoch, step, position).
py::tuple place(PythonLoader& self) {
  const Loader::Place here = self.core().place();
  return py::make_tuple(here.epoch, here.step, here.position);
}

py::dict stats(PythonLoader& self) {
  constexpr double kNanosecond = 1e-9;
  const LoaderCounters& sums = self.core().stats();
  py::dict result;
  result["records"] = sums.records.load();
  result["bytes"] = sums.bytes.load();
  result["batches"] = sums.batches.load();
  result["consumer_waited_s"] = kNanosecond * static_cast<double>(sums.consumer_waited_ns);
  result["workers_waited_s"] = kNanosecond * static_cast<double>(sums.workers_waited_ns);
  result["read_ahead_bytes"] = sums.read_ahead_bytes.load();
  return result;
}

}  // namespace

void register_loader(py::module_& module) {
  py::class_<PythonLoaderPass>(module, "LoaderPass").def("next", &PythonLoaderPass::next);
  py::class_<PythonLoader>(module, "Loader")
      .def(constructor<PythonLoader, const PythonReader&, const Plan&, unsigned, unsigned,
                       std::shared_ptr<FeatureSchema>, const PythonLoader*>(),
           py::arg("reader"), py::arg("plan"), py::arg("threads"), py::arg("prefetch"),
           py::arg("features"), py::arg("counts_with") = nullptr)
      .def("begin",
           [](py::object self) { return std::make_unique<PythonLoaderPass>(std::move(self)); })
      .def("seek", &PythonLoader::seek, py::arg("epoch"), py::arg("position"))
      .def("close", &PythonLoader::close)
      .def("place", &place)
      .def("stats", &stats)
      .def("time_batches", &PythonLoader::time_batches, py::arg("most"));
  py::class_<TimedBatches, std::shared_ptr<TimedBatches>>(module, "TimedBatches")
      .def("times", [](const TimedBatches& self) {
        py::list result;
        for (const BatchTimes& each : self.times) {
          result.append(
              py::make_tuple(each.worker, each.waited_from, each.begin, each.read, each.end));
        }
        return result;
      });
  module.def("now_ns", &now_ns);
  module.def("load_packed", &load_packed, py::arg("reader"), py::arg("plan"), py::arg("epoch"),
             py::arg("step"), py::arg("features"));
}

}  // namespace tfrfast::python
