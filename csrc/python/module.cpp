#include "core/base/thread.h"
#include "python/classes.h"
#include "python/refused_arguments.h"
#include "python/register.h"

PYBIND11_MODULE(_native, module) {
  using namespace tfrfast::python;
  module.doc() = "The native core of tfrfast. Private: use the names in `tfrfast`.";
  register_errors(module);
  register_crc32c(module);
  register_storage(module);
  register_index(module);
  register_machine(module);
  register_record_batch(module);
  register_pieces(module);
  register_reader(module);
  register_encode(module);
  register_writer(module);
  register_shuffle(module);
  register_loader(module);
  register_order(module);
  register_example(module);
  register_arrow(module);
  register_keys(module);
  register_steps(module);
  register_summary(module);
  register_arrow_import(module);
  complete_classes(module);
  explain_refused_arguments(module);
  tfrfast::prepare_to_throw();  // the main thread
}
