// Emits loads and stores of the elements of memory that lanes compute with, whole registers and the rest of a
// row.
#pragma once

#include "engine/device/cpu/machine_code/lanes.h"
#include "engine/tensor/dtype.h"

namespace caldera::cpu {

/// Holds a register: numbers, or truth values where the type is boolean.
struct LaneValue {
  Lanes::Vec lanes;
  LaneMask mask;
  bool is_mask = false;

  static LaneValue of(const Lanes::Vec& v) { return {v, {}, false}; }
  static LaneValue of(const LaneMask& m) { return {{}, m, true}; }
};

/// Which lanes there are: all, or the first few.
struct LaneRest {
  bool is_whole = true;
  LaneMask mask;             // of those that are there
  asmjit::x86::Gp elements;  // how many
};

class LaneMemory {
 public:
  explicit LaneMemory(const Lanes& lanes) : l_(lanes) {}

  /// Whether elements of the type are loaded and stored here, and computed as f32, i32 or truth values.
  static bool knows(DType type);

  /// The lanes of a rest of `elements`, fewer than a register holds.
  LaneRest rest_of(const asmjit::x86::Gp& elements) const;
  LaneValue load(DType type, const asmjit::x86::Mem& from, const LaneRest& rest) const;
  /// The element in every lane.
  LaneValue load_one(DType type, const asmjit::x86::Mem& from) const;
  /// `streams`: past the caches, to an address that is a multiple of the register's size.
  void store(DType type, const asmjit::x86::Mem& to, const LaneValue& value, const LaneRest& rest,
             bool streams) const;
  /// The first lane alone.
  void store_one(DType type, const asmjit::x86::Mem& to, const LaneValue& value) const;

  /// Rounds x to what bf16 holds, in the low half of each lane.
  Lanes::Vec bf16_bits(const Lanes::Vec& x) const;

 private:
  LaneMask truth_of(const Lanes::Vec& lanes) const;
  LaneValue load_whole(DType type, const asmjit::x86::Mem& from) const;
  /// Copies `elements` elements of `size` bytes.
  void copy_bytes(const asmjit::x86::Mem& to, const asmjit::x86::Mem& from, const asmjit::x86::Gp& elements,
                  int size) const;
  /// A register whose low bytes are what is stored of the value.
  Lanes::Vec narrowed(DType type, const LaneValue& value) const;

  const Lanes& l_;
};

}  // namespace caldera::cpu
