#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "engine/base/error.h"
#include "engine/distributed/communicator.h"
#include "training/trainer/scaling.h"

namespace caldera {
namespace {

/// The shortest of some sums of `elements` f32, in seconds: of the rank that took longest.
double seconds_of_sum(distributed::Communicator& ranks, std::int64_t elements) {
  using Clock = std::chrono::steady_clock;
  constexpr int kTimes = 12;
  std::vector<float> data(static_cast<std::size_t>(elements), 1.0F);
  double best = 0;
  for (int k = 0; k < kTimes; ++k) {
    ranks.barrier();
    const Clock::time_point begin = Clock::now();
    ranks
        .all_reduce(distributed::Combine::sum, distributed::SumOrder::fixed, DType::f32, data.data(),
                    elements)
        ->wait();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (k == 1 || (k > 0 && seconds < best)) best = seconds;  // the first is for buffers that are made once
  }
  const std::vector<double> own{best};
  double longest = 0;
  for (const std::vector<double>& of_rank : ranks.gather(own)) longest = std::max(longest, of_rank[0]);
  return longest;
}

}  // namespace

Link measured_link(distributed::Communicator& ranks) {
  if (ranks.size() < 2) throw ValueError("measured_link: there is no link to measure: start it under mpirun");
  const auto n = static_cast<double>(ranks.size());
  // Least squares of relative errors: seconds = messages * latency + bytes / bandwidth.
  double mm = 0, mb = 0, bb = 0, m1 = 0, b1 = 0;
  for (std::int64_t bytes = 1 << 10; bytes <= 8 << 20; bytes *= 2) {
    const double seconds = seconds_of_sum(ranks, bytes / 4);
    constexpr std::int64_t kAllToAll = 16 << 10;  // up to here each sends all it has (communicator.cpp)
    const bool is_small = bytes <= kAllToAll;
    const double messages = (is_small ? 1 : 2) * (n - 1) / seconds;
    const double moved = static_cast<double>(bytes) * (n - 1) * (is_small ? 1 : 2 / n) / seconds;
    mm += messages * messages;
    mb += messages * moved;
    bb += moved * moved;
    m1 += messages;
    b1 += moved;
  }
  const double determinant = mm * bb - mb * mb;
  const double latency = (m1 * bb - b1 * mb) / determinant;
  const double per_byte = (b1 * mm - m1 * mb) / determinant;
  return {"measured", std::max(latency, 1e-9), 1 / std::max(per_byte, 1e-15)};
}

}  // namespace caldera
