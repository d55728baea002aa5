#include "engine/device/cpu/machine_code/point_streams.h"

#include <algorithm>

namespace caldera::cpu {

using asmjit::BaseNode;

void PointStreams::end_stream() {
  std::vector<BaseNode*>& nodes = streams_.emplace_back();
  while (last_ != cc_.cursor()) {
    last_ = last_->next();
    nodes.push_back(last_);
    is_straight_ = is_straight_ && last_->type() == asmjit::NodeType::kInst;
  }
}

std::size_t PointStreams::length() const {
  std::size_t length = 0;
  for (const auto& nodes : streams_) length = std::max(length, nodes.size());
  return length;
}

void PointStreams::weave() {
  if (is_straight_ && streams_.size() > 1) {
    for (const auto& nodes : streams_)
      for (BaseNode* node : nodes) cc_.removeNode(node);  // the cursor goes back to the node before
    const std::size_t count = length();
    for (std::size_t i = 0; i < count; ++i)
      for (const auto& nodes : streams_)
        if (i < nodes.size()) cc_.addNode(nodes[i]);
  }
  streams_.clear();
  last_ = cc_.cursor();
  is_straight_ = true;
}

void PointStreams::discard() {
  for (const auto& nodes : streams_)
    for (BaseNode* node : nodes) cc_.removeNode(node);
  streams_.clear();
  last_ = cc_.cursor();
  is_straight_ = true;
}

}  // namespace caldera::cpu
