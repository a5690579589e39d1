// One call of a kernel: inputs, outputs and failure. Strings that share memory are views if the
// runtime counts references, and copies otherwise.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/pool.h"
#include "core/example/columns.h"
#include "core/example/schema.h"
#include "tensorflow/c_api.h"

namespace tfrfast::tensorflow {

// Damage travels through the graph as a string until its turn comes.
Code code_of(const Error& error) noexcept;

// "<code> <message>". Never empty.
std::string encode_error(Code code, std::string_view message);
inline std::string encode_error(const Error& error) {
  return encode_error(code_of(error), error.message());
}

// Thrown by a kernel to fail with a code of its choice.
struct KernelFailure {
  Code code = Code::unknown;
  std::string message;
};
KernelFailure decode_error(std::string_view text);

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

// Whether records are handed out as counted views. Off until Python has looked at the runtime.
bool hands_out_views() noexcept;
void hand_out_views(bool yes) noexcept;

// Keeps memory alive as long as any string points into the memory. Owns itself: deleted with the
// last reference.
class MemoryOwner : public StringOwner {
 public:
  MemoryOwner(std::shared_ptr<const void> memory, std::size_t references)
      : StringOwner{&add_reference, &drop_reference, this},
        memory_(std::move(memory)),
        references_(references) {}

 private:
  static void add_reference(StringOwner* self) {
    static_cast<MemoryOwner*>(self->object)->references_.fetch_add(1, std::memory_order_relaxed);
  }
  static bool drop_reference(StringOwner* self) {
    auto* owner = static_cast<MemoryOwner*>(self->object);
    if (owner->references_.fetch_sub(1, std::memory_order_acq_rel) > 1) return false;
    delete owner;
    return true;
  }

  const std::shared_ptr<const void> memory_;
  std::atomic<std::size_t> references_;
};

// Writes `count` strings. string_at(i) returns the bytes of string i, which must lie in `memory`.
template <class StringAt>
void write_shared_strings(TString* out, std::size_t count, const StringAt& string_at,
                          const std::shared_ptr<const void>& memory) {
  // Asked once: each view needs a reference.
  const bool has_views = hands_out_views();
  std::size_t views = 0;
  for (std::size_t i = 0; i < count && has_views; ++i) {
    views += string_at(i).size() > TString::kSmallCapacity;
  }
  MemoryOwner* const owner = views == 0 ? nullptr : new MemoryOwner(memory, views);
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const std::uint8_t> bytes = string_at(i);
    if (owner != nullptr && bytes.size() > TString::kSmallCapacity) {
      out[i].write_view(bytes.data(), bytes.size(), owner);
    } else {
      out[i].write_copy(bytes.data(), bytes.size());
    }
  }
}

// Writes the columns to outputs `first`, `first + 1`, ... Returns the number after the last output.
// A column becomes these tensors, in this order, as far as it has them: indices, values, row
// splits, step splits, dense shape. Throws Error(invalid) if an output has another type in the
// graph.
int write_columns(KernelCall& call, int first, const FeatureSchema& schema,
                  std::vector<Column> columns);

}  // namespace tfrfast::tensorflow
