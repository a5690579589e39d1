// Registers the ops when the library is loaded. All ops are stateless: results depend on the
// inputs, and on files, which are refused unless they match the inputs.
#include <initializer_list>
#include <new>

#include "tensorflow/kernel_call.h"
#include "tensorflow/reading_ops.h"

namespace tfrfast::tensorflow {
namespace {

// TfrfastPass: fails with an error given as text, and returns `true` for an empty text.
void compute_pass(KernelCall& call) {
  const std::string_view error = call.string(0);
  if (!error.empty()) throw decode_error(error);
  call.set_boolean(0, true);
}

// The state of a kernel that keeps nothing from call to call.
struct Nothing {};
template <void (*compute)(KernelCall&)>
void compute_alone(Nothing&, KernelCall& call) {
  compute(call);
}

template <class State>
void* create_state(TF_OpKernelConstruction*) {
  return new (std::nothrow) State;
}
template <class State>
void delete_state(void* kernel) {
  delete static_cast<State*>(kernel);
}
template <class State, void (*compute)(State&, KernelCall&)>
void run_with_state(void* kernel, TF_OpKernelContext* context) {
  run_kernel(context, [kernel](KernelCall& call) { compute(*static_cast<State*>(kernel), call); });
}

void infer_unknown_shapes(TF_ShapeInferenceContext* context, TF_Status* status) {
  c_api()->TF_ShapeInferenceContextSetUnknownShape(context, status);
}

using Specs = std::initializer_list<const char*>;

// Registers an op whose kernel keeps a `State` from call to call.
template <class State, void (*compute)(State&, KernelCall&)>
void register_op(const CApi& api, const char* name, Specs inputs, Specs outputs,
                 Specs attributes = {}) {
  TF_OpDefinitionBuilder* definition = api.TF_NewOpDefinitionBuilder(name);
  for (const char* each : inputs) api.TF_OpDefinitionBuilderAddInput(definition, each);
  for (const char* each : attributes) api.TF_OpDefinitionBuilderAddAttr(definition, each);
  for (const char* each : outputs) api.TF_OpDefinitionBuilderAddOutput(definition, each);
  api.TF_OpDefinitionBuilderSetShapeInferenceFunction(definition, &infer_unknown_shapes);
  TF_Status* status = api.TF_NewStatus();
  api.TF_RegisterOpDefinition(definition, status);
  api.TF_RegisterKernelBuilder(
      name,
      api.TF_NewKernelBuilder(name, "CPU", &create_state<State>, &run_with_state<State, compute>,
                              &delete_state<State>),
      status);
  api.TF_DeleteStatus(status);
}

[[gnu::constructor]] void register_all() {
  if (c_api() == nullptr) return;
  const CApi& api = *c_api();
  const Specs types = {"column_types: list(type)"};
  register_op<Nothing, compute_alone<compute_source>>(
      api, "TfrfastSource",
      {"filenames: string", "skip_damage: int64", "compression: int64", "storage: string"},
      {"source: string"});
  register_op<Requests, compute_walk>(
      api, "TfrfastWalk", {"source: string", "wanted: int64", "state: int64", "files: int64"},
      {"next: int64", "batches: int64", "errors: string"});
  register_op<Requests, compute_step_count>(api, "TfrfastStepCount",
                                            {"source: string", "sequence: string", "files: int64"},
                                            {"counted: int64"});
  register_op<ReadingKernel, compute_read>(
      api, "TfrfastRead",
      {"source: string", "order: string", "place: int64", "errors: string", "features: string"},
      {"columns: column_types", "is_sound: bool", "facts: int64", "error: string"}, types);
  register_op<ReadingKernel, compute_load>(
      api, "TfrfastLoad",
      {"source: string", "plan: string", "run: int64", "step: int64", "features: string"},
      {"columns: column_types", "records: int64", "valid: bool", "error: string"}, types);
  register_op<ReadingKernel, compute_parse_example>(api, "TfrfastParseExample",
                                                    {"records: string", "features: string"},
                                                    {"columns: column_types"}, types);
  register_op<Nothing, compute_alone<compute_pass>>(api, "TfrfastPass", {"error: string"},
                                                    {"passes: bool"});
}

}  // namespace
}  // namespace tfrfast::tensorflow
