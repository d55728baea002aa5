// Estimates how long a dispatch takes, by what a card can do and by the code that a driver made: a bound by
// each thing that it needs, put together.
//
//   memory      bytes / (bandwidth * share). Bytes are those of engine/plan/cost.h: each element that is
//               touched, once; caches count for nothing. The share is by Little's law: what is under way at
//               once, 16 bytes an invocation that is resident, against bandwidth * 600 ns.
//   arithmetic  flops / (rate * busy), at the rate of f16 and bf16 matrices for kernels that use cooperative
//               matrices, else at that of f32 multiply-adds.
//   issue       instructions / (schedulers * clock * busy), one a cycle. Of products and attention, the loop
//               with the multiply-adds is run as often as the flops say; of others, the whole code once an
//               invocation, and its walks over points as often as the dispatch says. On AMD only vector
//               instructions count, which scalar ones and loads run along with, and matrix instructions take
//               their time on the same port. Without a listing of the code there is no such bound.
//   shared      bytes loaded from and stored to shared memory, counted likewise, at 128 a cycle and unit.
//
// Busy is the share of the card's schedulers that have a subgroup to run: workgroups spread over the units
// (the last round may leave some idle), and subgroups of a unit over its schedulers. Resident invocations are
// those of the workgroups that fit, by the occupancy that the driver states.
//
// Memory, computing (the longer of arithmetic and issue) and shared memory overlap only where one workgroup
// of a unit computes while another waits. So the longest of the three counts in full, and of the others a
// g-th, where a unit has g workgroups at once.
//
// The fixed cost is 1 us a dispatch and 2 us a barrier: what is between the work of two dispatches on cards
// of this kind, about. Dispatches do not overlap. No other stall is counted, and no instruction takes more
// than a cycle but matrix instructions: what runs takes longer.
#pragma once

#include <string_view>

#include "engine/survey/cards.h"
#include "engine/survey/kernel_report.h"

namespace caldera {

inline constexpr double kDispatchSeconds = 1e-6;
inline constexpr double kBarrierSeconds = 2e-6;

/// Seconds of one dispatch, by each bound.
struct TimeEstimate {
  double memory = 0;
  double arithmetic = 0;
  double issue = 0;
  double shared = 0;
  double fixed = 0;
  double workgroups = 1;  // of a unit at once

  double seconds() const;
  /// The longest: "memory", "arithmetic", "issue", "shared" or "fixed".
  std::string_view bound() const;
};

TimeEstimate estimate_time(const Card& card, const KernelReport& kernel, const DispatchFacts& dispatch);

}  // namespace caldera
