#include "engine/autodiff/checkpoint/keep_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>

#include "engine/autodiff/checkpoint/minimum_cut.h"
#include "engine/base/error.h"
#include "engine/graph/convolution_node.h"
#include "engine/graph/node.h"
#include "engine/graph/quantized_node.h"

namespace caldera {
namespace {

// A core with vector units and memory as most machines have them: what counts is how one stands to the other.
constexpr double kFlopsPerSecond = 2e11;
constexpr double kBytesPerSecond = 1e10;

double bytes_of(const LazyTensor& x) {
  return static_cast<double>(x.numel()) * static_cast<double>(size_of(x.dtype()));
}

/// Floating-point operations of a product; 0 of what is none.
double product_flops(const Node& node) {
  const auto elements = static_cast<double>(node.shape().numel());
  if (node.kind() == OpClass::contract) {
    const std::scoped_lock lock(graph_mutex());
    if (node.inputs().empty()) return 0;  // it has a value, and let go of what it came from
    const Shape& rows = node.inputs()[0]->shape();
    return 2 * elements * static_cast<double>(rows[rows.rank() - 1]);
  }
  if (node.kind() == OpClass::convolution) {
    const std::scoped_lock lock(graph_mutex());
    if (node.inputs().size() < 2) return 0;  // likewise
    return ConvolutionNode::of(node.attributes().values())
        .flops(node.inputs()[0]->shape(), node.inputs()[1]->shape(), node.shape());
  }
  if (node.kind() != OpClass::quantized) return 0;
  const QuantizedNode work = QuantizedNode::of(node.attributes().values());
  if (!work.is_product()) return elements;
  return 2 * elements * static_cast<double>(work.work == QuantizedWork::product ? work.columns : work.rows);
}

bool shares_memory(OpClass kind) {
  switch (kind) {
    case OpClass::reshape:
    case OpClass::permute:
    case OpClass::slice:
    case OpClass::broadcast:
    case OpClass::identity:
    case OpClass::barrier:
      return true;
    default:
      return false;
  }
}

void check(std::span<const KeepCost> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const std::uint32_t input : values[i].inputs) {
      if (input >= i)
        throw ValueError(
            fmt::format("keep: value {} is computed from value {}, which is no earlier one", i, input));
    }
  }
}

/// What has to be computed again where `kept` is there.
std::vector<bool> computed_again(std::span<const KeepCost> values, const std::vector<bool>& kept) {
  std::vector<bool> again(values.size(), false);
  for (std::size_t i = values.size(); i-- > 0;) {
    if (values[i].is_needed && !kept[i]) again[i] = true;
    if (!again[i]) continue;
    for (const std::uint32_t input : values[i].inputs) {
      if (!kept[input]) again[input] = true;
    }
  }
  return again;
}

/// Decides on one value after the other, the last ones first: the bound is what those decided on cost
/// already.
class BranchAndBound {
 public:
  BranchAndBound(std::span<const KeepCost> values, std::int64_t bytes) : values_(values), left_(bytes) {
    best_.seconds = std::numeric_limits<double>::infinity();
    kept_.assign(values.size(), false);
    required_.assign(values.size(), 0);
  }

  KeepAnswer operator()() {
    decide(values_.size());
    return best_;
  }

 private:
  void decide(std::size_t end) {
    if (seconds_ > best_.seconds || (seconds_ == best_.seconds && bytes_ >= best_.bytes)) return;
    while (end > 0 && !is_required(end - 1)) --end;
    if (end == 0) {
      best_ = {.kept = kept_, .bytes = bytes_, .seconds = seconds_};
      return;
    }
    const std::size_t i = end - 1;
    const KeepCost& value = values_[i];
    if (value.may_be_kept && value.bytes <= left_) {
      kept_[i] = true;
      left_ -= value.bytes;
      bytes_ += value.bytes;
      decide(i);
      kept_[i] = false;
      left_ += value.bytes;
      bytes_ -= value.bytes;
    }
    const double before = seconds_;
    seconds_ += value.seconds;
    for (const std::uint32_t input : value.inputs) ++required_[input];
    decide(i);
    for (const std::uint32_t input : value.inputs) --required_[input];
    seconds_ = before;
  }
  bool is_required(std::size_t i) const { return values_[i].is_needed || required_[i] > 0; }

  std::span<const KeepCost> values_;
  std::int64_t left_;
  std::vector<bool> kept_;
  std::vector<int> required_;  // by how many values that are computed again
  std::int64_t bytes_ = 0;
  double seconds_ = 0;
  KeepAnswer best_;
};

/// The cheapest answer where a kept byte costs `price` seconds. A value that is there in the backward pass is
/// on the side of the source by its first vertex, and computed again if by its second as well.
KeepAnswer answer_at(std::span<const KeepCost> values, double price) {
  const auto count = static_cast<std::uint32_t>(values.size());
  MinimumCut cut(2 * count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t is_there = 2 * i, again = 2 * i + 1;
    const KeepCost& value = values[i];
    if (value.is_needed) cut.add_edge(cut.source(), is_there, MinimumCut::kEndless);
    cut.add_edge(is_there, again,
                 value.may_be_kept ? price * static_cast<double>(value.bytes) : MinimumCut::kEndless);
    cut.add_edge(again, cut.sink(), value.seconds);
    for (const std::uint32_t input : value.inputs) cut.add_edge(again, 2 * input, MinimumCut::kEndless);
  }
  const std::vector<bool> side = cut.source_side();
  std::vector<bool> kept(count);
  for (std::uint32_t i = 0; i < count; ++i) kept[i] = side[2 * i] && !side[2 * i + 1];
  return answer_of(values, std::move(kept));
}

/// An answer on the hull between two of its answers, if there is one.
std::optional<KeepAnswer> answer_between(std::span<const KeepCost> values, const KeepAnswer& more,
                                         const KeepAnswer& fewer) {
  if (more.bytes <= fewer.bytes) return std::nullopt;
  const double price = (fewer.seconds - more.seconds) / static_cast<double>(more.bytes - fewer.bytes);
  KeepAnswer between = answer_at(values, price);
  const auto total = [&](const KeepAnswer& a) { return a.seconds + price * static_cast<double>(a.bytes); };
  const bool is_new =
      between.bytes < more.bytes && between.bytes > fewer.bytes && total(between) < total(more) * (1 - 1e-9);
  return is_new ? std::optional(std::move(between)) : std::nullopt;
}

/// Adds what lies on the hull between two of its answers.
void add_between(std::span<const KeepCost> values, const KeepAnswer& more, const KeepAnswer& fewer,
                 std::vector<KeepAnswer>& answers) {
  const std::optional<KeepAnswer> between = answer_between(values, more, fewer);
  if (!between) return;
  add_between(values, more, *between, answers);
  answers.push_back(*between);
  add_between(values, *between, fewer, answers);
}

/// The first and the last answer on the hull: what keeps the most that is worth keeping, and nothing.
struct HullEnds {
  KeepAnswer most, nothing;
};
HullEnds ends_of_hull(std::span<const KeepCost> values) {
  check(values);
  KeepAnswer nothing = answer_of(values, std::vector<bool>(values.size(), false));
  // At a price that decides between answers of equal seconds alone.
  double least = std::numeric_limits<double>::infinity();
  double all = 0;
  for (const KeepCost& value : values) {
    if (value.seconds > 0) least = std::min(least, value.seconds);
    all += static_cast<double>(value.bytes);
  }
  if (nothing.seconds == 0 || all == 0) return {.most = nothing, .nothing = nothing};
  return {.most = answer_at(values, least / all * 1e-3), .nothing = std::move(nothing)};
}

}  // namespace

std::vector<KeepCost> keep_costs(std::span<const InnerValue> values) {
  std::vector<KeepCost> costs;
  costs.reserve(values.size());
  for (const InnerValue& value : values) {
    const Node& node = value.tensor.node();
    const bool is_view = shares_memory(node.kind());
    const double bytes = bytes_of(value.tensor);
    // An attention is computed as one, by tiles: what it costs is counted where its result is.
    const double flops = (value.is_attention_result ? 2 : 1) * product_flops(node);
    costs.push_back(
        {.bytes = static_cast<std::int64_t>(bytes),
         .seconds = is_view || value.is_in_attention ? 0 : flops / kFlopsPerSecond + bytes / kBytesPerSecond,
         .inputs = value.inputs,
         .is_needed = value.is_needed,
         .may_be_kept = !is_view && !value.is_in_attention});
  }
  return costs;
}

KeepAnswer answer_of(std::span<const KeepCost> values, std::vector<bool> kept) {
  const std::vector<bool> again = computed_again(values, kept);
  KeepAnswer answer{.kept = std::move(kept)};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (answer.kept[i]) answer.bytes += values[i].bytes;
    if (again[i]) answer.seconds += values[i].seconds;
  }
  return answer;
}

KeepAnswer cheapest_within(std::span<const KeepCost> values, std::int64_t bytes) {
  check(values);
  const auto open = static_cast<std::size_t>(std::ranges::count_if(values, &KeepCost::may_be_kept));
  if (open > kMostChosenOneByOne)
    throw ValueError(fmt::format("keep: {} values may be kept, more than {}; take convex_answers", open,
                                 kMostChosenOneByOne));
  return BranchAndBound(values, bytes)();
}

std::vector<KeepAnswer> convex_answers(std::span<const KeepCost> values) {
  const HullEnds ends = ends_of_hull(values);
  std::vector<KeepAnswer> answers{ends.most};
  add_between(values, ends.most, ends.nothing, answers);
  if (ends.most.bytes > ends.nothing.bytes) answers.push_back(ends.nothing);
  return answers;
}

KeepAnswer convex_answer_within(std::span<const KeepCost> values, std::int64_t bytes) {
  auto [more, fewer] = ends_of_hull(values);
  if (more.bytes <= bytes) return more;
  while (const std::optional<KeepAnswer> between = answer_between(values, more, fewer))
    (between->bytes <= bytes ? fewer : more) = *between;
  return fewer;
}

}  // namespace caldera
