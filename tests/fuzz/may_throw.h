// What hostile input may lead to: an Error that says something, or nothing.
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
