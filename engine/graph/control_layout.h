// ControlLayout: what the inputs, parts and results of a node of OpClass::control are. The contract between
// those who build loops and branches (engine/control), the compiler and the devices.
#pragma once

#include <cstdint>

namespace caldera {

/// A part is a program that the node runs; its parameters are numbered as the groups stand in `inputs`
/// below, and it reads those that it needs. A slice is what is at one place along the first axis of an input.
/// A list is one parameter, but as many inputs as there are turns, one behind the other: each turn reads that
/// at its place. A listed result is one of a part, and as many of the node, one for each turn.
///
///   loop      inputs: carries, slices, constants, lists. results: carries, stacked, listed.
///             Part 0, the body, gives the carries of the next turn, one slice of each stacked result, and
///             one tensor of each listed result. Where the count of turns is not known, part 1, the test,
///             gives one bool: whether there is another turn; and part 2 copies the carries. Part 3, if there
///             is one, is test and body in one: it gives the carries of the next turn, or those that it got
///             where the test says no, and what the test says. It may run beyond the end.
///   branch    inputs: constants, which (one i32). results: stacked, which are whole tensors here.
///             Part i gives the results where `which` is i; the first or last where it is beyond.
///   reversal  inputs: carries (as before the first turn), slices, constants, states, lists, turns (one i64,
///             where the count is not known before). results: states, stacked, listed.
///             Part 0 gives the carries of the next turn. Part 1, given the carries of a turn, goes from the
///             states behind the turn to those before it, and gives a slice of each stacked result and a
///             tensor of each listed one. It runs for the turns from the last to the first. Where the count
///             is not known, part 2 copies the states.
///   exchange  inputs: one constant. results: one stacked, which is a whole tensor. No parts: the host makes
///             the result of the input (host_exchange.h) while the steps that do not read it go on.
enum class ControlKind : std::uint8_t { loop, branch, reversal, exchange };

struct ControlLayout {
  ControlKind kind = ControlKind::loop;
  bool is_backwards = false;  // turn 0 takes the last slices, and the last tensors of lists
  std::uint32_t carries = 0;
  std::uint32_t slices = 0;
  std::uint32_t constants = 0;
  std::uint32_t states = 0;
  std::uint32_t lists = 0;  // where the count of turns is known
  std::uint32_t stacked = 0;
  std::uint32_t listed = 0;    // as lists
  std::int64_t turns = -1;     // >= 1; -1: not known before
  std::int64_t snapshots = 0;  // of a reversal: carries that are kept at a time, those of the first turn
                               // among them; >= 1. The others are computed again

  bool has_known_turns() const { return turns >= 0; }
  std::uint32_t first_list() const { return carries + slices + constants + states; }
  std::uint32_t parameters() const { return first_list() + lists; }
  /// The input where list `l` begins.
  std::uint32_t list_begin(std::uint32_t l) const { return first_list() + l * tensors_of_a_list(); }
  /// Whether each turn gets a parameter of its own: a slice, or a tensor of a list.
  bool is_of_turn(std::uint32_t parameter) const {
    return parameter >= first_list() || (parameter >= carries && parameter < carries + slices);
  }
  std::uint32_t tensors_of_a_list() const {
    return has_known_turns() ? static_cast<std::uint32_t>(turns) : 0;
  }
  /// Results that go round from turn to turn; they come first.
  std::uint32_t carried() const { return kind == ControlKind::reversal ? states : carries; }
  /// Whether a part gives stacked and listed results; and how many it gives then, those that go round too.
  bool gives_results(std::uint32_t part) const {
    return kind == ControlKind::branch || part == (kind == ControlKind::reversal ? 1 : 0);
  }
  std::uint32_t part_results() const { return carried() + stacked + listed; }
  /// The result of the node where listed result `l` begins.
  std::uint32_t listed_begin(std::uint32_t l) const { return carried() + stacked + l * tensors_of_a_list(); }
  std::uint32_t results() const { return listed_begin(listed); }
  /// A further input, behind the parameters: `which`, or the count of turns.
  bool has_selector() const {
    return kind == ControlKind::branch || (kind == ControlKind::reversal && !has_known_turns());
  }
  std::uint32_t tensors() const { return list_begin(lists) + (has_selector() ? 1 : 0); }
};

}  // namespace caldera
