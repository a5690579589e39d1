// One call of a kernel: inputs, outputs and failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/pool.h"
#include "tensorflow/c_api.h"
#include "tensorflow/error_text.h"
#include "tensorflow/tstring.h"

namespace tfrfast::tensorflow {

using Shape = std::vector<std::int64_t>;

// Lives as long as the call, as do the inputs. One thread.
class KernelCall {
 public:
  explicit KernelCall(TF_OpKernelContext* context);
  ~KernelCall();
  KernelCall(const KernelCall&) = delete;
  KernelCall& operator=(const KernelCall&) = delete;

  // Throw KernelFailure if the input has another type. Functions that return one element also throw
  // for no elements or several.
  std::span<const TString> strings(int input);
  std::string_view string(int input);
  std::span<const std::int64_t> integers(int input);
  std::int64_t integer(int input);

  int output_count() const noexcept { return api_.TF_NumOutputs(context_); }

  // Allocates empty strings, for the caller to write.
  std::span<TString> allocate_strings(int output, const Shape& shape);
  std::span<TString> allocate_strings(int output, std::size_t count) {
    return allocate_strings(output, Shape{static_cast<std::int64_t>(count)});
  }
  void set_string(int output, std::string_view value);                  // a scalar
  void set_boolean(int output, bool value);                             // a scalar
  void set_integers(int output, std::span<const std::int64_t> values);  // a vector
  void set_booleans(int output, std::span<const char> values);          // a vector
  // The tensor takes over the memory. Throws Error(invalid) if the memory is too small.
  void set_tensor(int output, DataType type, const Shape& shape, PooledBuffer memory);
  // Like set_tensor(), with numbers of the graph's type, which must fill `bytes` exactly.
  void set_values(int output, const Shape& shape, std::size_t bytes, PooledBuffer memory);

  void fail(Code code, const std::string& message) noexcept;

 private:
  TF_Tensor* input(int number, DataType type);
  void* allocate(int output, DataType type, const Shape& shape, std::size_t bytes);
  std::optional<std::size_t> bytes_of(DataType type, const Shape& shape) const noexcept;
  void check();

  const CApi& api_;
  TF_OpKernelContext* context_;
  TF_Status* status_;
  std::vector<TF_Tensor*> held_;
};

// Runs `compute(call)` and turns its exceptions into the call's failure. No exception may pass
// through TensorFlow's C frames.
template <class Compute>
void run_kernel(TF_OpKernelContext* context, const Compute& compute) noexcept {
  KernelCall call(context);
  try {
    compute(call);
  } catch (const KernelFailure& failure) {
    call.fail(failure.code, failure.message);
  } catch (const Error& error) {
    call.fail(code_of(error), error.message());
  } catch (const std::bad_alloc&) {
    call.fail(Code::resource_exhausted, "There is no memory left.");
  } catch (const std::exception& error) {
    call.fail(Code::internal, error.what());
  }
}

}  // namespace tfrfast::tensorflow
