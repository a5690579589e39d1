// Words the errors about a shard's damage.
#pragma once

#include "core/index/opening.h"

namespace tfrfast {

// Explains structural damage: the damaged record, the expected and the found bytes, and the loss.
[[noreturn]] void throw_damage(const IndexedShard& shard, const Damage& damage);

}  // namespace tfrfast
