#include "training/trainer/gradient_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "engine/base/error.h"
#include "engine/runtime/runtime.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/ranges.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/shape/joining.h"
#include "ops/sort/sorting.h"
#include "training/trainer/joined_tensors.h"

namespace caldera::detail {
namespace {

constexpr std::int64_t kRow = 1024;
constexpr std::string_view kSaved = "kept_of_message.";

LazyTensor padded(const LazyTensor& x, std::int64_t n) {
  if (x.numel() == n) return x;
  return concatenate({x, LazyTensor::zeros({n - x.numel()}, x.dtype(), x.device())}, 0);
}

}  // namespace

GradientExchange::GradientExchange(const std::vector<Parameter>& parameters, const TrainOptions& options,
                                   bool is_scaled)
    : options_(options.sharing), group_(options.ranks) {
  if (!is_whole() && is_scaled)
    throw ValueError(
        "training: gradients of a model that computes in f16 are scaled, and can only be sent whole: leave "
        "out gradient_type and top_share, or compute in bf16");
  std::vector<LazyTensor> like;
  like.reserve(parameters.size());
  for (const Parameter& p : parameters) like.push_back(*p.tensor);
  ranges_ = message_ranges(like);
  if (is_whole()) return;
  for (const auto& [begin, end] : ranges_) {
    std::int64_t n = 0;
    for (std::size_t i = begin; i < end; ++i) n += like[i].numel();
    kept_.push_back(LazyTensor::zeros({(n + kRow - 1) / kRow * kRow}, DType::f32, like.front().device()));
  }
  eval(kept_);  // leaves from the start, so that the first step has the plan of all later ones
}

std::map<std::string, LazyTensor> GradientExchange::state() const {
  std::map<std::string, LazyTensor> state;
  for (std::size_t k = 0; k < kept_.size(); ++k) {
    LazyTensor all = distributed::all_gather(kept_[k], group_);
    all.eval();
    if (group_.rank() == 0) state.emplace(fmt::format("{}{}", kSaved, k), stop_gradient(all));
  }
  return state;
}

void GradientExchange::restore_state(const std::map<std::string, LazyTensor>& state) {
  if (state.empty() || kept_.empty()) return;
  for (std::size_t k = 0; k < kept_.size(); ++k) {
    const std::int64_t n = kept_[k].numel();
    const auto found = state.find(fmt::format("{}{}", kSaved, k));
    if (found == state.end() || found->second.numel() % n != 0 || found->second.dtype() != DType::f32)
      throw ValueError(fmt::format(
          "the run to go on with has not kept what message {} of the gradients left out: go on with the "
          "options that it began with",
          k));
    const LazyTensor of_ranks = reshape(found->second, {found->second.numel() / n, n});
    if (of_ranks.shape(0) == group_.size())
      kept_[k] = reshape(slice(of_ranks, 0, group_.rank(), group_.rank() + 1), {n});
    else
      kept_[k] = group_.rank() == 0 ? sum(of_ranks, 0) : zeros_like(kept_[k]);
    kept_[k] = stop_gradient(kept_[k]);
  }
  eval(kept_);
}

std::map<std::string, LazyTensor> GradientExchange::take_state(std::map<std::string, LazyTensor>& tensors) {
  std::map<std::string, LazyTensor> state;
  for (auto at = tensors.lower_bound(std::string(kSaved));
       at != tensors.end() && at->first.starts_with(kSaved);)
    state.insert(tensors.extract(at++));
  return state;
}

bool GradientExchange::is_whole() const {
  return options_.gradient_type == DType::f32 && options_.top_share >= 1;
}

LazyTensor GradientExchange::sum_coded(const LazyTensor& own, LazyTensor& kept) const {
  const LazyTensor due = padded(astype(own, DType::f32), kept.numel()) + kept;
  const auto order = options_.fast_reduction ? distributed::SumOrder::fast : distributed::SumOrder::fixed;
  const auto as_sent = [&](const LazyTensor& x) { return astype(x, options_.gradient_type); };
  if (options_.top_share >= 1) {
    const LazyTensor sent = as_sent(due);
    kept = stop_gradient(due - astype(sent, DType::f32));
    return astype(distributed::all_sum(sent, group_, order), DType::f32);
  }
  // Of each row its largest: to sort all would take longer than to send them.
  const std::int64_t rows = due.numel() / kRow;
  const auto count = static_cast<std::int64_t>(std::ceil(kRow * options_.top_share));
  const LazyTensor in_rows = topk(abs(reshape(due, {rows, kRow})), count).indices;
  const LazyTensor row_begin =
      reshape(arange(std::int64_t{0}, rows * kRow, kRow, DType::i32, due.device()), {rows, 1});
  const LazyTensor places = reshape(astype(in_rows, DType::i32) + row_begin, {rows * count});
  const LazyTensor sent = as_sent(take(due, places));
  kept = stop_gradient(scatter_add(due, places, -astype(sent, DType::f32)));
  return scatter_add(zeros_like(due), distributed::all_gather(places, group_),
                     astype(distributed::all_gather(sent, group_), DType::f32));
}

std::vector<LazyTensor> GradientExchange::summed(std::vector<LazyTensor> grads) {
  const auto order = options_.fast_reduction ? distributed::SumOrder::fast : distributed::SumOrder::fixed;
  for (std::size_t k = 0; k < ranges_.size(); ++k) {
    const auto [begin, end] = ranges_[k];
    const std::span<LazyTensor> part = std::span(grads).subspan(begin, end - begin);
    const LazyTensor own = joined(part);
    separate(
        is_whole() ? distributed::all_sum(own, group_, order) : astype(sum_coded(own, kept_[k]), own.dtype()),
        part);
  }
  return grads;
}

}  // namespace caldera::detail
