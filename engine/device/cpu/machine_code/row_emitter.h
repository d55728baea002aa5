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
  /// `streams`: numbers of 4 bytes are stored past the caches.
  RowEmitter(asmjit::x86::Compiler& compiler, VectorSet set, const RowRoutine& routine, bool streams);

  /// Appends the whole function (RowFunction). False where the program has something that machine code lacks;
  /// what was appended until then is of no use.
  bool run();

 private:
  using Gp = asmjit::x86::Gp;
  using Vec = Lanes::Vec;
  struct Accumulator {
    Vec parts[4];  // of the stretch at hand
    Vec wide;      // f64 in the lowest lane for sums and products, else f32
    LaneMask nan;  // of those that order: where a NaN came by
  };

  asmjit::x86::Mem place(std::uint16_t location, DType type, const Gp& index) const;
  const Gp& address(std::uint16_t location);
  void find_addresses();
  bool load_uniform(const RoutineLine& line);
  std::optional<LaneValue> uniform_of(std::uint16_t location, DType type);
  std::optional<LaneValue> value_of(std::uint16_t location, DType type, const Gp& index,
                                    const LaneRest& rest);

  bool emit_row_code(const std::vector<RoutineLine>& code);
  bool emit_walk(const RoutineWalk& walk);
  bool emit_plain_walk(const RoutineWalk& walk);
  bool emit_reducing_walk(const RoutineWalk& walk);
  bool emit_point(const RoutineWalk& walk, const Gp& index, const LaneRest& rest, int part);
  bool combine_stretch(const RoutineWalk& walk);
  /// Makes a NaN of the result where one came by.
  void put_nan(const Accumulator& a);
  Vec combined(Combine combine, const Vec& a, const Vec& b) const;
  Vec combined_lanes(Combine combine, const Vec& v) const;

  asmjit::x86::Compiler& cc_;
  Lanes lanes_;
  LaneMemory memory_;
  const RowRoutine& routine_;
  const bool streams_;
  Gp n_;
  std::vector<bool> addressed_;                     // locations that are read or written in memory
  std::vector<Gp> addresses_;                       // of those, in the row at hand
  std::vector<std::optional<LaneValue>> uniforms_;  // of each location, in the row at hand
  std::vector<std::optional<LaneValue>> points_;    // of each location, at the points at hand
  std::vector<Accumulator> accumulators_;           // of the walk at hand
  std::vector<std::optional<Divisor>> divisors_;    // of uniform locations, in the walk at hand
};

}  // namespace caldera::cpu
