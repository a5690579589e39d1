// Loads functions from optional libraries of the machine.
#pragma once

#include <dlfcn.h>

#include <initializer_list>

namespace tfrfast {

// Loads the first available library of `names`. Null if none is available. A library is never
// closed, because its code may be running.
inline void* find_library(std::initializer_list<const char*> names) noexcept {
  for (const char* name : names) {
    if (void* library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL); library != nullptr) return library;
  }
  return nullptr;
}

// False if the library lacks the function.
template <class Function>
bool find_function(void* library, const char* name, Function*& function) noexcept {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace tfrfast
