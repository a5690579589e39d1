#include "tensorflow/c_api.h"

#include <dlfcn.h>

#include <cstring>
#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

namespace tfrfast::tensorflow {
namespace {

// Returns the library if the process has loaded it. Never loads the library.
void* loaded_framework() noexcept {
#if defined(__APPLE__)
  for (std::uint32_t image = 0; image < _dyld_image_count(); ++image) {
    const char* name = _dyld_get_image_name(image);
    if (name != nullptr && std::strstr(name, "libtensorflow_framework.") != nullptr) {
      return ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    }
  }
  return nullptr;
#else
  return ::dlopen("libtensorflow_framework.so.2", RTLD_LAZY | RTLD_NOLOAD);
#endif
}

template <class Function>
bool bind(void* library, const char* name, Function** function) noexcept {
  *function = reinterpret_cast<Function*>(::dlsym(library, name));
  return *function != nullptr;
}

bool bind_all(void* library, CApi* api) noexcept {
  bool found = true;
#define TFRFAST_BIND(name) found = bind(library, #name, &api->name) && found
  TFRFAST_BIND(TF_NewStatus);
  TFRFAST_BIND(TF_DeleteStatus);
  TFRFAST_BIND(TF_SetStatus);
  TFRFAST_BIND(TF_GetCode);
  TFRFAST_BIND(TF_Message);
  TFRFAST_BIND(TF_NewOpDefinitionBuilder);
  TFRFAST_BIND(TF_OpDefinitionBuilderAddInput);
  TFRFAST_BIND(TF_OpDefinitionBuilderAddOutput);
  TFRFAST_BIND(TF_OpDefinitionBuilderAddAttr);
  TFRFAST_BIND(TF_OpDefinitionBuilderSetShapeInferenceFunction);
  TFRFAST_BIND(TF_RegisterOpDefinition);
  TFRFAST_BIND(TF_ShapeInferenceContextSetUnknownShape);
  TFRFAST_BIND(TF_NewKernelBuilder);
  TFRFAST_BIND(TF_RegisterKernelBuilder);
  TFRFAST_BIND(TF_GetInput);
  TFRFAST_BIND(TF_AllocateOutput);
  TFRFAST_BIND(TF_SetOutput);
  TFRFAST_BIND(TF_NumOutputs);
  TFRFAST_BIND(TF_ExpectedOutputDataType);
  TFRFAST_BIND(TF_OpKernelContext_Failure);
  TFRFAST_BIND(TF_DataTypeSize);
  TFRFAST_BIND(TF_NewTensor);
  TFRFAST_BIND(TF_TensorData);
  TFRFAST_BIND(TF_TensorElementCount);
  TFRFAST_BIND(TF_TensorType);
  TFRFAST_BIND(TF_DeleteTensor);
#undef TFRFAST_BIND
  return found;
}

}  // namespace

const CApi* c_api() noexcept {
  static const CApi* const api = []() -> const CApi* {
    static CApi bound;
    void* library = loaded_framework();
    return library != nullptr && bind_all(library, &bound) ? &bound : nullptr;
  }();
  return api;
}

}  // namespace tfrfast::tensorflow
