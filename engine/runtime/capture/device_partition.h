// Cut: a graph over several devices as parts of one device each. Internal to the runtime.
//
// A node's stage is the most moves between devices (OpClass::transfer) on any way to it. What has one device
// and one stage is a part: nothing within it waits for another device halfway, and parts in order of their
// stages never wait for a later one, so there are no cycles and no deadlocks, whatever the shape of the
// graph. A value that no other device waits for is computed at the stage that first needs it, where it can
// fuse with its reader.
#pragma once

#include <span>
#include <vector>

#include "engine/graph/node.h"
#include "engine/tensor/device.h"

namespace caldera {

struct DevicePart {
  Device device;
  std::vector<Node*> received;  // transfers to the device, whose values come before anything is computed
  std::vector<Node*> nodes;     // what is computed, inputs before users
  std::vector<Node*> outputs;   // those of `nodes` that are asked for, or that other parts need
};

/// The lazy graph behind `outputs` (distinct, lazy) as parts in an order in which they can run one after the
/// other. Linear in the size of the graph; iterative. Under graph_mutex(); sets the walk of the nodes.
std::vector<DevicePart> cut(std::span<Node* const> outputs);

}  // namespace caldera
