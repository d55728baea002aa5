// StepGraph: which steps of a plan must come before which, and what memory each keeps alive. What schedules
// are searched on.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/plan/plan.h"

namespace caldera {

/// Lists of integers, one a row, in one array.
template <class T>
class Rows {
 public:
  void push(T value) { values_.push_back(value); }
  void end_row() { starts_.push_back(static_cast<std::uint32_t>(values_.size())); }
  std::span<const T> operator[](std::size_t row) const {
    return {values_.data() + starts_[row], starts_[row + 1] - starts_[row]};
  }
  /// The values pushed since the last row ended.
  std::span<const T> open_row() const { return std::span<const T>(values_).subspan(starts_.back()); }
  std::span<const T> all() const { return values_; }

 private:
  std::vector<T> values_;
  std::vector<std::uint32_t> starts_{0};
};

/// An output's block that may take the place of an operand's: (output, operand).
using Replacement = std::pair<std::int32_t, std::int32_t>;

/// Returns what a step exchanges with other ranks; null for steps that do not.
const HostExchange* exchange_of(const Step& step);

/// Bytes that a buffer takes in the arena.
std::int64_t arena_bytes_of(const PlanBuffer& buffer);

/// Besides the dependencies of the plan, exchanges of a queue stay in the order that they have
/// (early_exchanges.h).
struct StepGraph {
  explicit StepGraph(const Plan& plan);

  std::size_t size() const { return predecessors.size(); }

  std::vector<std::uint32_t> predecessors;  // how many edges lead to each step
  Rows<std::uint32_t> successors;           // an edge may stand more than once
  // Blocks are the arena buffers, numbered as the plan's buffers less `first_block`.
  std::int32_t first_block = 0;
  std::vector<std::int64_t> bytes;         // of each block
  std::vector<std::uint32_t> touch_count;  // steps that touch each block
  Rows<std::int32_t> touches;              // blocks that each step touches, each once
  Rows<Replacement> replacements;          // for each step
};

/// Moves the steps of a plan into an order, a list of all their indices.
void put_in_order(Plan& plan, std::span<const std::uint32_t> order);

/// The edges of the graph, the other way round.
Rows<std::uint32_t> reversed_edges(const StepGraph& graph);

/// Walks an order of steps and knows what is alive.
class LiveBytes {
 public:
  explicit LiveBytes(const StepGraph& graph) : graph_(graph), left_(graph.touch_count) {}

  /// Bytes alive while `step` runs, were it next.
  std::int64_t during(std::uint32_t step) const;
  /// Bytes alive after it less those alive now.
  std::int64_t change(std::uint32_t step) const;
  /// Runs it. Calls last_left(block) for every block that just one more step will touch.
  template <class Visit>
  void run(std::uint32_t step, Visit last_left) {
    now_ += change(step);
    for (std::int32_t block : graph_.touches[step]) {
      if (--left_[static_cast<std::size_t>(block)] == 1) last_left(block);
    }
  }

 private:
  bool is_new(std::int32_t block) const {
    const auto b = static_cast<std::size_t>(block);
    return left_[b] == graph_.touch_count[b];
  }
  bool dies(std::int32_t block) const { return left_[static_cast<std::size_t>(block)] == 1; }

  const StepGraph& graph_;
  std::vector<std::uint32_t> left_;  // steps still to touch each block
  std::int64_t now_ = 0;
};

/// Goes through a step's replacements and takes each whose output and operand are still free and for which
/// possible(output, operand) holds. Calls taken(output, operand).
template <class Possible, class Taken>
void match_replacements(std::span<const Replacement> replacements, Possible possible, Taken taken) {
  std::uint32_t chosen = 0;  // by position: there are at most kMaxReplacements
  for (std::size_t r = 0; r < replacements.size(); ++r) {
    const auto [output, operand] = replacements[r];
    bool is_free = true;
    for (std::size_t earlier = 0; earlier < r && is_free; ++earlier) {
      is_free = (chosen >> earlier & 1) == 0 ||
                (replacements[earlier].first != output && replacements[earlier].second != operand);
    }
    if (!is_free || !possible(output, operand)) continue;
    chosen |= std::uint32_t{1} << r;
    taken(output, operand);
  }
}

inline constexpr std::size_t kMaxReplacements = 32;

/// The peak of bytes alive in this order.
std::int64_t peak_of(const StepGraph& graph, std::span<const std::uint32_t> order);

}  // namespace caldera
