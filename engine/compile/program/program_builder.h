// ProgramBuilder: how a pass makes a new program from an old one, node by node, inputs first. Equal nodes
// coincide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "engine/compile/program/program.h"

namespace caldera {

class ProgramBuilder {
 public:
  /// Leaves are taken over at once and keep their slots; the other nodes follow by `copy` or `make`.
  explicit ProgramBuilder(const Program& from);

  const Program& from() const { return from_; }
  const Program::Node& node(std::uint32_t i) const { return to_.nodes[i]; }
  std::span<const std::uint32_t> inputs(std::uint32_t i) const { return to_.inputs_of(to_.nodes[i]); }
  /// Returns where node `old` of the old program went.
  std::uint32_t at(std::uint32_t old) const { return map_[old]; }
  void set(std::uint32_t old, std::uint32_t now) { map_[old] = now; }
  bool is_leaf(std::uint32_t old) const;

  /// The old node with its inputs mapped.
  std::uint32_t copy(std::uint32_t old);
  /// A node of the new program; one that is there already, if it means the same.
  std::uint32_t make(const OpDef& op, DType dtype, const Shape& shape,
                     std::span<const std::int64_t> attributes, std::span<const std::uint32_t> inputs,
                     std::uint32_t origin);
  std::uint32_t make(const OpDef& op, DType dtype, const Shape& shape,
                     std::initializer_list<std::int64_t> attributes,
                     std::initializer_list<std::uint32_t> inputs, std::uint32_t origin);
  /// Node `now` of the new program with its last two axes exchanged.
  std::uint32_t transpose(std::uint32_t now, std::uint32_t origin);
  /// A scalar leaf of a fixed value.
  std::uint32_t constant(double value, DType dtype, std::uint32_t origin);

  /// The new program. Outputs are those of the old one, mapped.
  Program finish();

 private:
  struct Wanted {
    const OpDef& op;
    DType dtype;
    const Shape& shape;
    std::span<const std::int64_t> attributes;
    std::span<const std::uint32_t> inputs;
  };
  static std::uint64_t hash_of(const Wanted& wanted);
  bool is(std::uint32_t node, const Wanted& wanted) const;
  void grow();
  /// `lasting`: the attributes live as long as the program.
  std::uint32_t make(const Wanted& wanted, std::uint32_t origin, bool lasting);

  const Program& from_;
  Program to_;
  std::vector<std::uint32_t> map_;
  /// Nodes by what they mean: an open table, at most half full.
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t node = kNoRoot;
  };
  std::vector<Slot> table_;
  std::size_t made_ = 0;
};

/// The operations that passes make new nodes of: those of ops/ with the same meaning.
namespace compiled_ops {
extern const OpDef kReshape, kPermute, kSlice, kBroadcast, kConcatenate, kMultiply, kSum, kProduct, kScalar;
}  // namespace compiled_ops

}  // namespace caldera
