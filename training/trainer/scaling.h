// Scaling: what a step of data parallel training takes on machines that are not here.
//
// A model with latency and bandwidth (R. Hockney, "The communication challenge for MPP", 1994): a message of
// b bytes takes latency + b / bandwidth.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace caldera {

namespace distributed {
class Communicator;
}  // namespace distributed

struct Link {
  std::string_view name;
  double latency = 0;    ///< seconds, of a message between two processes
  double bandwidth = 0;  ///< bytes a second, in each direction
};

/// Lists those that are known by name. Latency is what MPI has over such a link, bandwidth nine tenths of the
/// link's.
const std::vector<Link>& known_links();

/// Measures the link between the ranks of a group, which all call it: times of sums of 1 KiB to 8 MiB in the
/// fixed tree, and the latency and bandwidth by which the model below is nearest to them. Takes a second.
/// Throws ValueError for fewer than 2 ranks.
Link measured_link(distributed::Communicator& ranks);

/// Says what each node does in a step.
struct ScaledStep {
  std::int64_t parameters = 0;  ///< of the model
  std::int64_t trained = 0;     ///< of those, or of its adapter
  std::int64_t tokens = 0;      ///< a node and step
  double flops = 0;             ///< that a node makes in a second
  double weight_bytes = 4;      ///< of a parameter that is not trained
  bool fast = false;            ///< sums in MPI's order (SumOrder::fast), not in the fixed tree
};

struct ScaledRow {
  std::int64_t nodes = 1;
  double compute = 0;        ///< seconds
  double messages = 0;       ///< seconds that they take
  double waiting = 0;        ///< seconds of those that nothing is computed in
  double traffic_bytes = 0;  ///< that a node sends
  double rank_bytes = 0;     ///< weights, gradients and AdamW's state; not what the layers keep
  double step() const { return compute + waiting; }
  /// The share of the time that is not waited.
  double efficiency() const { return compute / step(); }
};

/// Estimates a step of `nodes` over `link`, each of which does as much as one alone would:
///
/// - computing: 2 operations a parameter and token forward; as many backward for the inputs' gradients, and
///   for those of what is trained;
/// - messages: gradients in parts (GradientExchange), 8 of those of 512 KiB to 128 MiB. The fixed tree sends
/// n - 1 messages to share the sums
///   out and as many to gather them; MPI's own sum takes 2 log2(n), of as many bytes: 2 S (n - 1) / n a node;
/// - all parts but the last go while the backward pass computes, the last behind it.
ScaledRow scaled_row(const ScaledStep& step, const Link& link, std::int64_t nodes);

}  // namespace caldera
