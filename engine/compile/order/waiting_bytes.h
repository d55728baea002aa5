// Counts what steps that wait keep alive, beyond what is alive in the order that a plan came in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/compile/order/step_graph.h"

namespace caldera {

/// Walks an order of which some steps wait: the order is passed step by step, and steps run at once or later.
/// A block is *held* if the order is past its last step but one that touches it has not run. What is alive is
/// never more than what the order itself has there and the blocks held, which is to stay within `most` bytes.
class WaitingBytes {
 public:
  WaitingBytes(const StepGraph& graph, std::span<const std::uint32_t> order, std::int64_t most);

  /// A step that waits and should run before the order comes to `step`, as too much would be alive then; none
  /// where that is not so.
  std::optional<std::uint32_t> to_run_before(std::uint32_t step);
  /// The step has run.
  void run(std::uint32_t step);
  /// The order is past this step, whether it has run or waits.
  void pass(std::uint32_t step);

 private:
  struct Block {
    std::uint32_t last = 0;  // step of the order that touches it
    std::uint32_t left = 0;  // steps that have not run
    std::uint32_t next = 0;  // of the steps that touch it: those before have run
    bool held = false;
  };

  const StepGraph& graph_;
  std::vector<Block> blocks_;
  Rows<std::uint32_t> touched_by_;  // steps, for each block
  std::vector<bool> has_run_;       // of each step
  LiveBytes live_;                  // of the order itself
  std::vector<std::int32_t> held_;  // blocks that are or were, in the order in which they came to be
  std::size_t first_ = 0;           // of those, the first that may be held still
  std::int64_t held_bytes_ = 0;
  std::int64_t most_;  // what may be alive
};

}  // namespace caldera
