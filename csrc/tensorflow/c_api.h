// The prototypes that we use of TensorFlow's C API. We declare the prototypes and bind them at run
// time to the process's TensorFlow, so one build of the ops serves every release.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
struct TF_Status;
struct TF_Tensor;
struct TF_OpDefinitionBuilder;
struct TF_KernelBuilder;
struct TF_OpKernelConstruction;
struct TF_OpKernelContext;
struct TF_ShapeInferenceContext;
}

namespace tfrfast::tensorflow {

enum class Code : int {
  ok = 0,
  unknown = 2,
  invalid_argument = 3,
  not_found = 5,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  internal = 13,
  data_loss = 15,
};

// TensorFlow's numbers of types. Features may have further numeric types.
enum class DataType : int { int32 = 3, string = 7, int64 = 9, boolean = 10 };

using CreateKernel = void* (*)(TF_OpKernelConstruction*);
using ComputeKernel = void (*)(void* kernel, TF_OpKernelContext*);
using DeleteKernel = void (*)(void* kernel);
using InferShape = void (*)(TF_ShapeInferenceContext*, TF_Status*);

// Lacks TF_OpDefinitionBuilderSetIsStateful on purpose. That function makes an op stateful whatever
// its argument, and a stateful op in a map cannot be checkpointed.
struct CApi {
  TF_Status* (*TF_NewStatus)();
  void (*TF_DeleteStatus)(TF_Status*);
  void (*TF_SetStatus)(TF_Status*, int code, const char* message);
  int (*TF_GetCode)(const TF_Status*);
  const char* (*TF_Message)(const TF_Status*);

  TF_OpDefinitionBuilder* (*TF_NewOpDefinitionBuilder)(const char* name);
  void (*TF_OpDefinitionBuilderAddInput)(TF_OpDefinitionBuilder*, const char* spec);
  void (*TF_OpDefinitionBuilderAddOutput)(TF_OpDefinitionBuilder*, const char* spec);
  void (*TF_OpDefinitionBuilderAddAttr)(TF_OpDefinitionBuilder*, const char* spec);
  void (*TF_OpDefinitionBuilderSetShapeInferenceFunction)(TF_OpDefinitionBuilder*, InferShape);
  void (*TF_RegisterOpDefinition)(TF_OpDefinitionBuilder*, TF_Status*);
  void (*TF_ShapeInferenceContextSetUnknownShape)(TF_ShapeInferenceContext*, TF_Status*);

  TF_KernelBuilder* (*TF_NewKernelBuilder)(const char* op, const char* device, CreateKernel,
                                           ComputeKernel, DeleteKernel);
  void (*TF_RegisterKernelBuilder)(const char* name, TF_KernelBuilder*, TF_Status*);

  void (*TF_GetInput)(TF_OpKernelContext*, int number, TF_Tensor**, TF_Status*);
  TF_Tensor* (*TF_AllocateOutput)(TF_OpKernelContext*, int number, int type,
                                  const std::int64_t* dims, int dim_count, std::size_t bytes,
                                  TF_Status*);
  void (*TF_SetOutput)(TF_OpKernelContext*, int number, const TF_Tensor*, TF_Status*);
  int (*TF_NumOutputs)(TF_OpKernelContext*);
  int (*TF_ExpectedOutputDataType)(TF_OpKernelContext*, int number);  // the output must exist
  void (*TF_OpKernelContext_Failure)(TF_OpKernelContext*, TF_Status*);

  std::size_t (*TF_DataTypeSize)(int type);  // 0 for strings
  // Takes over the memory, and copies the memory unless aligned to 64 bytes. If the memory is too
  // small, releases the memory and returns null.
  TF_Tensor* (*TF_NewTensor)(int type, const std::int64_t* dims, int dim_count, void* data,
                             std::size_t bytes,
                             void (*release)(void* data, std::size_t bytes, void* argument),
                             void* argument);
  void* (*TF_TensorData)(const TF_Tensor*);
  std::int64_t (*TF_TensorElementCount)(const TF_Tensor*);
  int (*TF_TensorType)(const TF_Tensor*);
  void (*TF_DeleteTensor)(TF_Tensor*);
};

// Null if this process has not loaded TensorFlow, or if its TensorFlow lacks a function of CApi.
const CApi* c_api() noexcept;

}  // namespace tfrfast::tensorflow
