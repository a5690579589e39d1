// Functions of libraries that the machine may have.
#pragma once

#include <dlfcn.h>

#include <initializer_list>

namespace tfrfast {

// The first of `names` that can be loaded, else null. Never closed, because its code may run at any
// time.
inline void* find_library(std::initializer_list<const char*> names) noexcept {
  for (const char* name : names) {
    if (void* library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL); library != nullptr) return library;
  }
  return nullptr;
}

// False if the library has no such function.
template <class Function>
bool find_function(void* library, const char* name, Function*& function) noexcept {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace tfrfast
