// The prototypes that we use of TensorFlow's C API, and the layout of its strings. We declare the
// prototypes and bind them at run time to the process's TensorFlow, so one build of the ops serves
// every release.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

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

static_assert(std::endian::native == std::endian::little, "The layout below is little-endian.");

// Keeps a view's bytes alive. From TensorFlow 2.21 on, the runtime counts references through these
// calls. Earlier runtimes ignore the field, so they must not be given views.
struct StringOwner {
  void (*ref)(StringOwner* self);
  bool (*unref)(StringOwner* self);  // true for the last reference
  void* object;
};

class TString {
 public:
  static constexpr std::size_t kSmallCapacity = 22;

  std::string_view read() const noexcept {
    const auto* raw = reinterpret_cast<const char*>(words_);
    const auto size = static_cast<std::size_t>(words_[0] >> 2);
    switch (words_[0] & 3) {
      case kSmall:
        return {raw + 1, static_cast<std::size_t>(static_cast<std::uint8_t>(raw[0]) >> 2)};
      case kLarge:
        return {reinterpret_cast<const char*>(words_[2]), size};
      case kView:
        return {reinterpret_cast<const char*>(words_[1]), size};
      default: {  // kOffset
        std::uint32_t parts[2];
        std::memcpy(parts, raw, sizeof parts);
        return {raw + parts[1], parts[0] >> 2};
      }
    }
  }

  // Overwrite a string, which must own nothing. The strings of a new tensor own nothing.
  void write_small(const void* bytes, std::size_t count) noexcept {  // up to kSmallCapacity
    auto* raw = reinterpret_cast<char*>(words_);
    raw[0] = static_cast<char>(count << 2);
    if (count > 0) std::memcpy(raw + 1, bytes, count);
    raw[1 + count] = '\0';
  }

  void write_copy(const void* bytes, std::size_t count) {
    if (count <= kSmallCapacity) return write_small(bytes, count);
    // Rounded as in the runtime.
    const std::size_t capacity = ((count + 16) & ~std::size_t{15}) - 1;
    auto* memory = static_cast<char*>(std::malloc(capacity + 1));  // the runtime calls free()
    if (memory == nullptr) throw std::bad_alloc();
    std::memcpy(memory, bytes, count);
    memory[count] = '\0';
    write_words(count, kLarge, capacity, reinterpret_cast<std::uintptr_t>(memory));
  }

  // Takes over one reference to `owner`.
  void write_view(const void* bytes, std::size_t count, StringOwner* owner) noexcept {
    write_words(count, kView, reinterpret_cast<std::uintptr_t>(bytes),
                reinterpret_cast<std::uintptr_t>(owner));
  }

 private:
  // The words after the size: capacity and bytes of a large string, bytes and owner of a view.
  static constexpr std::uint64_t kSmall = 0, kLarge = 1, kView = 3;

  void write_words(std::size_t size, std::uint64_t kind, std::uint64_t second,
                   std::uint64_t third) noexcept {
    words_[0] = (static_cast<std::uint64_t>(size) << 2) | kind;
    words_[1] = second;
    words_[2] = third;
  }

  std::uint64_t words_[3];
};
static_assert(sizeof(TString) == 24);

}  // namespace tfrfast::tensorflow
