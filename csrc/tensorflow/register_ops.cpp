// Registers the ops when the library is loaded. All ops are stateless: results depend on the
// inputs, and on files, which are refused unless they match the inputs.
#include <initializer_list>
#include <memory>

#include "tensorflow/kernel_call.h"
#include "tensorflow/reading_ops.h"
#include "tensorflow/walk_op.h"

namespace tfrfast::tensorflow {
namespace {

// TfrfastRaise: fails with an error given as text.
void compute_raise(KernelCall& call) {
  throw failure_of(call.string(0));
}

// TfrfastPass: like TfrfastRaise, but returns `true` for an empty text.
void compute_pass(KernelCall& call) {
  const std::string_view error = call.string(0);
  if (!error.empty()) throw failure_of(error);
  call.set_boolean(0, true);
}

// Makes a kernel that keeps a `State` from call to call.
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

void* create_nothing(TF_OpKernelConstruction*) {
  return nullptr;
}
void delete_nothing(void*) {}
template <void (*compute)(KernelCall&)>
void run_alone(void*, TF_OpKernelContext* context) {
  run_kernel(context, compute);
}

void infer_unknown_shapes(TF_ShapeInferenceContext* context, TF_Status* status) {
  c_api()->TF_ShapeInferenceContextSetUnknownShape(context, status);
}

struct Op {
  const char* name;
  std::initializer_list<const char*> inputs;
  std::initializer_list<const char*> outputs;
  CreateKernel create;
  ComputeKernel compute;
  DeleteKernel destroy;
  std::initializer_list<const char*> attributes = {};
};

template <void (*compute)(KernelCall&)>
Op stateless(const char* name, std::initializer_list<const char*> inputs,
             std::initializer_list<const char*> outputs,
             std::initializer_list<const char*> attributes = {}) {
  return {name, inputs, outputs, &create_nothing, &run_alone<compute>, &delete_nothing, attributes};
}

template <class State, void (*compute)(State&, KernelCall&)>
Op keeping(const char* name, std::initializer_list<const char*> inputs,
           std::initializer_list<const char*> outputs,
           std::initializer_list<const char*> attributes = {}) {
  return {name,
          inputs,
          outputs,
          &create_state<State>,
          &run_with_state<State, compute>,
          &delete_state<State>,
          attributes};
}

void register_op(const CApi& api, const Op& op) {
  TF_OpDefinitionBuilder* definition = api.TF_NewOpDefinitionBuilder(op.name);
  for (const char* input : op.inputs) api.TF_OpDefinitionBuilderAddInput(definition, input);
  for (const char* attribute : op.attributes) {
    api.TF_OpDefinitionBuilderAddAttr(definition, attribute);
  }
  for (const char* output : op.outputs) api.TF_OpDefinitionBuilderAddOutput(definition, output);
  api.TF_OpDefinitionBuilderSetShapeInferenceFunction(definition, &infer_unknown_shapes);
  TF_Status* status = api.TF_NewStatus();
  api.TF_RegisterOpDefinition(definition, status);
  api.TF_RegisterKernelBuilder(
      op.name, api.TF_NewKernelBuilder(op.name, "CPU", op.create, op.compute, op.destroy), status);
  api.TF_DeleteStatus(status);
}

[[gnu::constructor]] void register_all() {
  const CApi* api = c_api();
  if (api == nullptr) return;
  register_op(*api, stateless<compute_source>("TfrfastSource",
                                              {"filenames: string", "skip_damage: int64",
                                               "compression: int64", "storage: string"},
                                              {"source: string"}));
  register_op(
      *api, keeping<Requests, compute_walk>(
                "TfrfastWalk", {"source: string", "wanted: int64", "state: int64", "files: int64"},
                {"next: int64", "batches: int64", "errors: string"}));
  register_op(*api, keeping<Requests, compute_step_count>(
                        "TfrfastStepCount", {"source: string", "sequence: string", "files: int64"},
                        {"count: int64"}));
  register_op(
      *api,
      keeping<ReadingKernel, compute_read>(
          "TfrfastRead",
          {"source: string", "order: string", "place: int64", "errors: string", "features: string"},
          {"columns: column_types", "is_sound: bool", "facts: int64", "error: string"},
          {"column_types: list(type)"}));
  register_op(
      *api, keeping<ReadingKernel, compute_load>(
                "TfrfastLoad",
                {"source: string", "plan: string", "run: int64", "step: int64", "features: string"},
                {"columns: column_types", "records: int64", "valid: bool", "error: string"},
                {"column_types: list(type)"}));
  register_op(*api, keeping<ReadingKernel, compute_parse_example>(
                        "TfrfastParseExample", {"records: string", "features: string"},
                        {"columns: column_types"}, {"column_types: list(type)"}));
  register_op(*api,
              stateless<compute_raise>("TfrfastRaise", {"error: string"}, {"records: string"}));
  register_op(*api, stateless<compute_pass>("TfrfastPass", {"error: string"}, {"passes: bool"}));
}

}  // namespace
}  // namespace tfrfast::tensorflow
