// DeviceTraits: what the compiler knows of the device that a plan is for.
#pragma once

#include <cstdint>

#include "engine/base/hash.h"

namespace caldera {

/// Facts by which the compiler splits and merges steps (engine/compile/lower). A backend states them once,
/// and they stay: they are part of what a plan is found by. Plans are right on every device, whatever the
/// traits they were made with, but for what a trait says of others.
struct DeviceTraits {
  /// Units that run workgroups side by side: multiprocessors of a GPU, cores under a software device. 0: it
  /// shares out the work of a step by itself, so that splitting steps wins nothing.
  std::int32_t compute_units = 0;
  /// A barrier, or a dispatch more, takes time: some memory is worth fewer of them. A device that runs one
  /// step after the other has neither.
  bool barriers_cost = true;
  /// Attention reads keys and values as they are stored: see StoredKeys. Other devices refuse such plans.
  bool reads_stored_keys = false;
  /// One step makes all three gradients of attention (AttentionPass::grad_qkv). Other devices refuse such
  /// plans.
  bool joins_attention_gradients = false;

  friend bool operator==(const DeviceTraits&, const DeviceTraits&) = default;
  void mix_into(Hash128& key) const {
    key.mix(static_cast<std::uint64_t>(compute_units) << 3 | (barriers_cost ? 1U : 0U) |
            (reads_stored_keys ? 2U : 0U) | (joins_attention_gradients ? 4U : 0U));
  }
};

}  // namespace caldera
