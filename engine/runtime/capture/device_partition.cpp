#include "engine/runtime/capture/device_partition.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace caldera {
namespace {

using Stage = std::uint32_t;

bool is_transfer(const Node& node) { return node.op().kind == OpClass::transfer; }
/// Leaves are on the device that reads them.
bool is_leaf(const Node& node) { return node.has_value() || node.is_scalar_leaf(); }

/// What is known of a node, by its position in the walk.
struct Place {
  Stage earliest = 0;  // with all its inputs there
  Stage stage = std::numeric_limits<Stage>::max();
  bool is_pinned = false;  // wanted as early as can be: it is asked for, or another device waits for it
  bool is_output = false;  // its value leaves the part
};

class Cutter {
 public:
  explicit Cutter(std::span<Node* const> outputs) {
    evaluation_order(outputs, is_leaf, walk_);
    places_.resize(walk_.order.size());
    for (const Node* output : outputs) at(*output).is_pinned = at(*output).is_output = true;
  }

  std::vector<DevicePart> run() {
    find_earliest();
    find_stages();
    find_outputs();
    return collect();
  }

 private:
  Place& at(const Node& node) { return places_[node.walk_index]; }

  void find_earliest() {
    for (const Node* node : walk_.order) {
      if (is_leaf(*node)) continue;
      Place& place = at(*node);
      for (const NodePtr& input : node->operands()) {
        if (is_leaf(*input)) continue;
        place.earliest = std::max(place.earliest, at(*input).earliest + (is_transfer(*node) ? 1 : 0));
      }
    }
  }

  /// Users come before their inputs here, so a place's stage is final when its turn comes.
  void find_stages() {
    for (auto node = walk_.order.rbegin(); node != walk_.order.rend(); ++node) {
      if (is_leaf(**node)) continue;
      Place& place = at(**node);
      if (place.is_pinned) place.stage = place.earliest;
      for (const NodePtr& input : (*node)->operands()) {
        if (is_transfer(**node))
          at(*input).is_pinned = true;
        else
          at(*input).stage = std::min(at(*input).stage, place.stage);
      }
    }
  }

  void find_outputs() {
    for (const Node* node : walk_.order) {
      if (is_leaf(*node)) continue;
      for (const NodePtr& input : node->operands()) {
        if (is_transfer(*node) || at(*input).stage != at(*node).stage) at(*input).is_output = true;
      }
    }
  }

  std::vector<DevicePart> collect() {
    std::map<std::tuple<Stage, DeviceKind, std::uint8_t>, DevicePart> parts;  // by stage first
    for (Node* node : walk_.order) {
      if (is_leaf(*node)) continue;
      const Place& place = at(*node);
      DevicePart& part = parts[{place.stage, node->device().kind, node->device().index}];
      part.device = node->device();
      if (is_transfer(*node)) {
        part.received.push_back(node);
        continue;
      }
      part.nodes.push_back(node);
      if (place.is_output) part.outputs.push_back(node);
    }
    std::vector<DevicePart> ordered;
    ordered.reserve(parts.size());
    for (auto& [key, part] : parts) ordered.push_back(std::move(part));
    return ordered;
  }

  Walk walk_;
  std::vector<Place> places_;
};

}  // namespace

std::vector<DevicePart> cut(std::span<Node* const> outputs) { return Cutter(outputs).run(); }

}  // namespace caldera
