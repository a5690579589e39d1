// Calls code with hostile input. An Error must have a message, and no other exception is allowed.
#pragma once

#include "core/base/error.h"
#include "memory_file.h"

template <class Action>
void may_throw(const Action& action) {
  try {
    action();
  } catch (const tfrfast::Error& error) {
    require(!error.message().empty());
  }
}
