#include "training/trainer/rank_optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "engine/base/error.h"
#include "engine/distributed/distributed.h"
#include "engine/runtime/runtime.h"
#include "ops/core/creation.h"
#include "ops/core/slicing.h"
#include "training/optim/registry.h"
#include "training/trainer/joined_tensors.h"

namespace caldera::detail {
namespace {

/// Which rank has each parameter: the largest first, each goes to who has least.
std::vector<std::size_t> owners_of(const std::vector<Parameter>& parameters, std::size_t ranks) {
  std::vector<std::size_t> order(parameters.size()), owner(parameters.size(), 0);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(),
                           [&](std::size_t i) { return parameters[i].tensor->numel(); });
  std::vector<std::int64_t> held(ranks, 0);
  for (const std::size_t i : order) {
    owner[i] = static_cast<std::size_t>(std::ranges::min_element(held) - held.begin());
    held[owner[i]] += std::max<std::int64_t>(1, parameters[i].tensor->numel());
  }
  return owner;
}

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// A tensor of some rank's state.
struct StatePart {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

/// Names, types and shapes in words that a space divides.
std::string described(const OptimizerState& state) {
  std::string text;
  for (const auto& [name, tensor] : state.tensors) {
    text += fmt::format("{}\n{} {}", name, static_cast<int>(tensor.dtype()), tensor.rank());
    for (const std::int64_t extent : tensor.shape()) text += fmt::format(" {}", extent);
    text += '\n';
  }
  return text;
}

std::vector<StatePart> parts_of(const std::vector<std::byte>& description) {
  std::vector<StatePart> parts;
  const std::string text(reinterpret_cast<const char*>(description.data()), description.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at), line_end = text.find('\n', end + 1);
    StatePart& part = parts.emplace_back(StatePart{.name = text.substr(at, end - at), .shape = {}});
    const char* number = text.c_str() + end;
    const auto next = [&] {
      char* behind = nullptr;
      const long long value = std::strtoll(number, &behind, 10);
      number = behind;
      return static_cast<std::int64_t>(value);
    };
    part.dtype = static_cast<DType>(next());
    std::vector<std::int64_t> extents(static_cast<std::size_t>(next()));
    for (std::int64_t& extent : extents) extent = next();
    part.shape = Shape(extents);
    at = line_end + 1;
  }
  return parts;
}

}  // namespace

RankOptimizer::RankOptimizer(std::vector<Parameter> parameters, const TrainOptions& options,
                             const RankShare& ranks)
    : options_(options), ranks_(ranks), parameters_(std::move(parameters)), owner_(parameters_.size(), 0) {
  const auto size = static_cast<std::size_t>(ranks.size()), rank = static_cast<std::size_t>(ranks.rank());
  const bool is_shared = options.sharing.shard_optimizer && size > 1;
  if (is_shared && parameters_.size() < size)
    throw ValueError(
        fmt::format("training: {} ranks cannot share the optimiser's state of {} parameters: start fewer, or "
                    "leave out shard_optimizer",
                    size, parameters_.size()));
  if (is_shared && options.ema_decay > 0)
    throw ValueError(
        "training: ranks that share the optimiser's state keep no moving average: leave out ema_decay");
  if (is_shared) owner_ = owners_of(parameters_, size);
  std::vector<Parameter> own, others;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const bool is_own = !is_shared || owner_[i] == rank;
    (is_own ? own : others).push_back(parameters_[i]);
    if (is_own) own_indices_.push_back(i);
  }
  own_ = make_optimizer(std::move(own), options.optimizer, others);
  if (options.sharing.sync_every > 0)
    outer_.emplace(parameters_, own_->state(), options.sharing,
                   ranks.is_alone() ? distributed::Group() : distributed::Group(options.ranks));
}

std::vector<LazyTensor> RankOptimizer::inputs() const {
  std::vector<LazyTensor> tensors;
  for (const Parameter& p : parameters_) tensors.push_back(*p.tensor);
  return tensors;
}

std::vector<LazyTensor> RankOptimizer::own_of(std::span<const LazyTensor> grads) const {
  std::vector<LazyTensor> own;
  for (const std::size_t i : own_indices_) own.push_back(grads[i]);
  return own;
}

void RankOptimizer::update(std::span<const LazyTensor> grads, double learning_rate) {
  own_->update(own_of(grads), learning_rate);
}

void RankOptimizer::update_if(const LazyTensor& apply, std::span<const LazyTensor> grads,
                              double learning_rate) {
  own_->update_if(apply, own_of(grads), learning_rate);
}

void RankOptimizer::exchange_parameters() {
  const distributed::Group group(options_.ranks);
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const auto ranks = static_cast<std::size_t>(group.size()), own = static_cast<std::size_t>(group.rank());
    std::vector<std::vector<std::size_t>> of_rank(ranks);
    std::vector<std::int64_t> elements(ranks, 0);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].tensor->dtype() != dtype) continue;
      of_rank[owner_[i]].push_back(i);
      elements[owner_[i]] += parameters_[i].tensor->numel();
    }
    // Each sends as much: up to what the one with most has.
    const std::int64_t most = std::ranges::max(elements);
    if (most == 0) continue;
    std::vector<LazyTensor> sent;
    for (const std::size_t i : of_rank[own]) sent.push_back(*parameters_[i].tensor);
    if (elements[own] < most)
      sent.push_back(LazyTensor::zeros({most - elements[own]}, dtype, parameters_.front().tensor->device()));
    const LazyTensor all = distributed::all_gather(joined(sent), group);
    std::vector<LazyTensor> results;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (rank == own || of_rank[rank].empty()) continue;
      std::vector<LazyTensor> received;
      for (const std::size_t i : of_rank[rank]) received.push_back(*parameters_[i].tensor);
      const auto begin = static_cast<std::int64_t>(rank) * most;
      separate(slice(all, 0, begin, begin + elements[rank]), received);
      for (std::size_t k = 0; k < received.size(); ++k)
        results.push_back(*parameters_[of_rank[rank][k]].tensor = stop_gradient(received[k]));
    }
    if (results.empty()) results.push_back(all);  // who has them all sends them nevertheless
    eval(results);
  }
}

std::vector<LazyTensor> RankOptimizer::outputs() const {
  std::vector<LazyTensor> all = inputs();
  const std::vector<LazyTensor> own = own_->outputs();
  all.insert(all.end(), own.begin() + static_cast<std::ptrdiff_t>(own_indices_.size()), own.end());
  return all;
}

bool RankOptimizer::is_synchronised(std::int64_t step) const {
  return !outer_ || step % options_.sharing.sync_every == 0 || step == options_.iterations;
}

void RankOptimizer::end_step(std::int64_t step) {
  if (is_sharded()) exchange_parameters();
  if (outer_ && is_synchronised(step)) outer_->take(*own_);
}

OptimizerState RankOptimizer::state() const {
  OptimizerState state = own_->state();
  if (outer_) state.tensors.merge(outer_->state());
  if (!is_sharded()) return state;
  const distributed::Group group(options_.ranks);
  const std::vector<std::vector<std::byte>> all = options_.ranks->gather(bytes_of(described(state)));
  OptimizerState whole{.step = state.step, .tensors = {}};
  for (int rank = 0; rank < group.size(); ++rank) {
    for (const StatePart& part : parts_of(all[static_cast<std::size_t>(rank)])) {
      // One at a time, so that nobody but rank 0 has more than one of them.
      const auto own = state.tensors.find(part.name);
      LazyTensor tensor = distributed::broadcast(
          rank == group.rank() ? own->second
                               : LazyTensor::zeros(part.shape, part.dtype, parameters_[0].tensor->device()),
          rank, group);
      tensor.eval();
      if (group.rank() == 0) whole.tensors.emplace(part.name, stop_gradient(tensor));
    }
  }
  return whole;
}

void RankOptimizer::restore(const OptimizerState& whole) {
  OptimizerState own{.step = whole.step, .tensors = {}};
  std::map<std::string, LazyTensor> outer;
  const OptimizerState now = own_->state();
  for (const auto& [name, tensor] : whole.tensors) {
    if (outer_ && OuterStep::is_own(name))
      outer.emplace(name, tensor);
    else if (!is_sharded() || now.tensors.contains(name))
      own.tensors.emplace(name, tensor);
  }
  own_->restore(own);
  if (outer_) outer_->restore(outer);
}

}  // namespace caldera::detail
