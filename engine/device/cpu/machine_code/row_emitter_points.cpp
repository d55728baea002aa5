// Registers of points, one after the other or side by side.
#include <algorithm>

#include "engine/device/cpu/machine_code/point_streams.h"
#include "engine/device/cpu/machine_code/row_emitter.h"
#include "engine/device/cpu/machine_code/walk_registers.h"

namespace caldera::cpu {
namespace {

using asmjit::imm;
using asmjit::Label;

/// Instructions at a point from which processors do not see the next points' behind them.
constexpr std::size_t kLongPoint = 24;
/// Instructions that are laid side by side at most: to find registers for more takes milliseconds.
constexpr std::size_t kMostWoven = 160;

}  // namespace

bool RowEmitter::emit_wide_loop(const RoutineWalk& walk, const Gp& index, int count) {
  const int points = count * lanes_.count();
  const Gp last = cc_.newInt64();
  const Label again = cc_.newLabel();
  const Label done = cc_.newLabel();
  cc_.mov(last, n_);
  cc_.sub(last, imm(points));
  cc_.jl(done);
  cc_.bind(again);
  if (!emit_points(walk, index, count)) return false;
  cc_.add(index, imm(points));
  cc_.cmp(index, last);
  cc_.jle(again);
  cc_.bind(done);
  return true;
}

bool RowEmitter::emit_points(const RoutineWalk& walk, const Gp& index, int count) {
  PointStreams streams(cc_);
  for (int part = 0; part < count; ++part) {
    ahead_ = part * lanes_.count();
    if (!emit_point(walk, index, {}, part)) return false;
    streams.end_stream();
    if ((part + 1) % side_by_side_ == 0) streams.weave();
  }
  ahead_ = 0;
  return true;
}

int RowEmitter::points_side_by_side(const RoutineWalk& walk, const Gp& index) {
  // One is emitted to see what it takes.
  PointStreams tried(cc_);
  const auto uniforms = uniforms_;
  const bool is_known = emit_point(walk, index, {}, 0);
  tried.end_stream();
  const std::size_t length = tried.length();
  const bool is_straight = tried.is_straight();
  tried.discard();
  uniforms_ = uniforms;
  if (!is_known) return 0;
  if (length < kLongPoint || !is_straight) return 1;
  const int registers = lanes_.is_wide ? 32 : 16;
  const int room =
      (registers - registers_of_walk(routine_, walk, kParts)) / registers_of_point(routine_, walk);
  const int most = std::min(room, static_cast<int>(kMostWoven / length));
  return most >= 4 ? 4 : most >= 2 ? 2 : 1;
}

}  // namespace caldera::cpu
