// WeightTarget: where a weight goes that is read from files.
#pragma once

#include "engine/tensor/device.h"

namespace caldera {

struct WeightTarget {
  /// Memory of the device's own.
  WeightTarget(Device of) : device(of) {}  // NOLINT(google-explicit-constructor): a device is where it goes
  WeightTarget(Device of, bool mapped) : device(of), in_file(mapped) {}

  Device device;
  /// Whether a tensor may have the bytes of the mapped file for its memory, where the device is the CPU and
  /// they are as it wants them: nothing is copied then. The file must not be written to while the tensor
  /// lives; another one may take its name.
  bool in_file = false;
};

}  // namespace caldera
