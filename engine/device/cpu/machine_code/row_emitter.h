// Emits the function of a program over rows: the loops over rows and points, and what is kept in registers.
#pragma once

#include <optional>
#include <vector>

#include "engine/device/cpu/machine_code/lane_memory.h"
#include "engine/device/cpu/machine_code/quotients.h"
#include "engine/device/cpu/machine_code/row_routine.h"

namespace caldera::cpu {

class RowEmitter {
 public:
  RowEmitter(asmjit::x86::Compiler& compiler, VectorSet set, const RowRoutine& routine);

  /// Appends the whole function (RowFunction). False where the program has something that machine code lacks;
  /// what was appended until then is of no use.
  bool run();

 private:
  using Gp = asmjit::x86::Gp;
  /// Partial results of a reduction.
  static constexpr int kParts = 4;
  using Vec = Lanes::Vec;
  struct Accumulator {
    Vec parts[kParts];  // of the stretch at hand
    Vec wide;           // f64 in the lowest lane for sums and products, else f32
    LaneMask nan;       // of those that order: where a NaN came by
  };

  asmjit::x86::Mem place(std::uint16_t location, DType type, const Gp& index, bool in_next_row = false) const;
  void find_addresses();
  /// Finds the walk in which each location is asked for ahead.
  void find_asks();
  std::optional<LaneValue> uniform_of(std::uint16_t location, DType type);
  std::optional<LaneValue> value_of(std::uint16_t location, DType type, const Gp& index,
                                    const LaneRest& rest);

  bool emit_row_code(const std::vector<RoutineLine>& code);
  bool emit_walk(const RoutineWalk& walk);
  bool emit_plain_walk(const RoutineWalk& walk);
  bool emit_reducing_walk(const RoutineWalk& walk);
  void begin_reduction(const RoutineWalk::Reduction& reduction, Accumulator& a);
  void take_up(const RoutineWalk::Reduction& reduction, const Accumulator& a, int part, Vec v,
               const LaneRest& rest);
  void gather_nan(const LaneMask& nan, const LaneMask& now);
  bool emit_point(const RoutineWalk& walk, const Gp& index, const LaneRest& rest, int part);
  /// Emits `count` registers of points, one behind the other in memory, some of them side by side.
  bool emit_points(const RoutineWalk& walk, const Gp& index, int count);
  /// A loop over so many registers of points that leaves fewer.
  bool emit_wide_loop(const RoutineWalk& walk, const Gp& index, int count);
  /// Counts the registers of points that are worth being laid side by side and find room: 1, 2 or 4; 0 where
  /// the walk has something that machine code lacks.
  int points_side_by_side(const RoutineWalk& walk, const Gp& index);
  bool combine_stretch(const RoutineWalk& walk);
  /// Makes a NaN of the result where one came by.
  void put_nan(const Accumulator& a);
  Vec combined(Combine combine, const Vec& a, const Vec& b) const;
  Vec combined_lanes(Combine combine, const Vec& v) const;

  asmjit::x86::Compiler& cc_;
  Lanes lanes_;
  LaneMemory memory_;
  const RowRoutine& routine_;
  Gp n_;
  int ahead_ = 0;                                   // elements from the index to the points at hand
  int side_by_side_ = 1;                            // registers of points, in the walk at hand
  std::vector<bool> addressed_;                     // locations that are read or written in memory
  std::vector<Gp> addresses_;                       // of those, in the row at hand
  std::vector<Gp> next_;                            // of those that are asked for, in the next row
  std::vector<const RoutineWalk*> asks_;            // of each location: the walk in which it is asked for
  const RoutineWalk* walk_ = nullptr;               // at hand
  std::vector<std::optional<LaneValue>> uniforms_;  // of each location, in the row at hand
  std::vector<std::optional<LaneValue>> points_;    // of each location, at the points at hand
  std::vector<Accumulator> accumulators_;           // of the walk at hand
  std::vector<std::optional<Divisor>> divisors_;    // of uniform locations, in the walk at hand
};

}  // namespace caldera::cpu
