// Points that a lane takes several at a time: what they read and write comes and goes in whole words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/device/vulkan/glsl/operands.h"

namespace caldera {

/// The operands of KernelVariant::width neighbouring points. Those that are together are the words
/// `w<k>_<group>`, which are filled before the points are computed and stored after them: in words of up to
/// 16 bytes where all addresses allow that, else element by element.
class GlslNeighbours {
 public:
  GlslNeighbours(const GlslOperands& operands, const KernelVariant& variant, GlslBody& body);

  int width() const { return width_; }
  bool together(int operand) const { return kind(operand) == Neighbours::together; }
  bool one(int operand) const { return kind(operand) == Neighbours::one; }

  /// Declares `aligned`: whether the addresses of all that is together are multiples of their words.
  void declare_aligned();
  /// Words of several groups of points may be there at once: those of group `g` are meant from here on.
  void take_group(int g) { group_ = g; }

  /// Declares the words of those of `used` that are together.
  void declare_loads(const std::vector<bool>& used);
  /// Fills them, from element number o<k> on. `whole`: condition that all points are there; empty: they are.
  /// `left`: the number of those that are.
  void load(const std::vector<bool>& used, std::string_view whole, std::string_view left);
  /// Declares words to be filled with what is stored.
  void declare_stores(const std::vector<int>& operands);
  /// Stores them.
  void store(const std::vector<int>& operands, std::string_view whole, std::string_view left);
  /// Opens the loop over the points, `e` being the point's number, and moves those of the `used` operands to
  /// it that have an element each. `left`: as for load().
  void open_each(const std::vector<bool>& used, std::string_view left = {});

  /// Point number `e` of an operand that is together, as compute_type() of its type.
  std::string value(int operand, GlslCalls& calls) const;
  /// The statement that makes `value` (of that type) what is stored at point number `e`.
  std::string set(int operand, const std::string& value, GlslCalls& calls) const;

 private:
  Neighbours kind(int operand) const;
  int words(int operand) const;
  std::string name(int operand) const;
  std::vector<int> loaded(const std::vector<bool>& used) const;
  std::string memory(int operand) const;
  std::string at(int operand, int byte) const;
  void open_points();
  void words_of(int operand, bool store);
  void elements_of(int operand, bool store, std::string_view left);

  const GlslOperands& operands_;
  const KernelVariant& variant_;
  GlslBody& body_;
  const int width_;
  int group_ = 0;
};

}  // namespace caldera
