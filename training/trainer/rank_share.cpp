#include "training/trainer/rank_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>

#include "engine/base/error.h"
#include "engine/base/hash.h"
#include "engine/distributed/distributed.h"
#include "engine/distributed/fixed_tree.h"
#include "engine/runtime/runtime.h"
#include "lm/models/causal_lm.h"
#include "ops/core/cast.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/shape/joining.h"

namespace caldera::detail {
namespace {

/// Parts that gradients are summed in: enough to be on the way while the rest is computed, and few enough
/// that each is worth a message.
constexpr std::int64_t kParts = 8;
constexpr std::int64_t kLeastBytes = std::int64_t{64} << 10;
constexpr std::int64_t kMostBytes = std::int64_t{16} << 20;

std::int64_t gradient_bytes(const LazyTensor& x) {
  return x.numel() * static_cast<std::int64_t>(size_of(x.dtype()));
}

/// Sums tensors [begin, end) as one.
void sum_part(std::span<LazyTensor> part, const distributed::Group& group, distributed::SumOrder order) {
  std::vector<LazyTensor> flat;
  for (const LazyTensor& x : part) flat.push_back(reshape(x, {x.numel()}));
  const LazyTensor total =
      distributed::all_sum(flat.size() == 1 ? flat.front() : concatenate(flat, 0), group, order);
  std::int64_t at = 0;
  for (LazyTensor& x : part) {
    const Shape shape = x.shape();
    const std::int64_t n = x.numel();
    x = reshape(slice(total, 0, at, at + n), shape);
    at += n;
  }
}

}  // namespace

RankShare::RankShare(const TrainOptions& options) : options_(options) {
  if (options.grad_accumulation < size())
    throw ValueError(fmt::format(
        "training: {} ranks share a step of {} batches: give at least as many (grad_accumulation), "
        "or fewer ranks",
        size(), options.grad_accumulation));
  batches_ = distributed::leaves_of_rank(options.grad_accumulation, rank(), size());
}

int RankShare::rank() const { return options_.ranks != nullptr ? options_.ranks->rank() : 0; }
int RankShare::size() const { return options_.ranks != nullptr ? options_.ranks->size() : 1; }

int RankShare::sums_due(std::int64_t batch) const {
  return distributed::sums_due(batch - batches_.first, batches_.second - batches_.first);
}

std::vector<LazyTensor> RankShare::summed(std::vector<LazyTensor> grads) const {
  if (is_alone()) return grads;
  const distributed::Group group(options_.ranks);
  const auto order = options_.fast_reduction ? distributed::SumOrder::fast : distributed::SumOrder::fixed;
  std::int64_t total = 0;
  for (const LazyTensor& g : grads) total += gradient_bytes(g);
  const std::int64_t enough = std::clamp(total / kParts, kLeastBytes, kMostBytes);
  std::size_t end = grads.size();
  std::int64_t held = 0;
  for (std::size_t i = grads.size(); i-- > 0;) {
    held += gradient_bytes(grads[i]);
    if (i > 0 && held < enough && grads[i - 1].dtype() == grads[i].dtype()) continue;
    sum_part(std::span(grads).subspan(i, end - i), group, order);
    end = i;
    held = 0;
  }
  return grads;
}

std::vector<std::vector<double>> RankShare::gather(std::span<const double> own) const {
  if (is_alone()) return {std::vector(own.begin(), own.end())};
  return options_.ranks->gather(own);
}

void RankShare::require_same(std::span<const std::pair<std::string, std::string>> facts) const {
  if (is_alone()) return;
  std::string text;
  for (const auto& [name, value] : facts) {
    text += value;
    text += '\n';
  }
  std::vector<std::vector<std::string>> all;
  for (const std::vector<std::byte>& bytes : options_.ranks->gather(std::as_bytes(std::span(text)))) {
    std::vector<std::string>& values = all.emplace_back(1);
    for (const std::byte b : bytes) {
      if (b == std::byte{'\n'})
        values.emplace_back();
      else
        values.back() += static_cast<char>(b);
    }
  }
  for (std::size_t r = 1; r < all.size(); ++r) {
    for (std::size_t k = 0; k < std::min(all[r].size(), all[0].size()); ++k) {
      if (all[r][k] == all[0][k]) continue;
      throw ValueError(
          fmt::format("rank {} has another {} than rank 0 ({}, not {}): all ranks must run the "
                      "same program with the same model, options and data",
                      r, facts[std::min(k, facts.size() - 1)].first, all[r][k], all[0][k]));
    }
  }
}

std::string fingerprint_of(CausalLM& model) {
  constexpr std::int64_t kFirst = 64;
  Hash128 hash;
  std::vector<LazyTensor> parts;
  for (const Parameter& p : model.parameters()) {
    hash.mix(p.name);
    hash.mix(p.tensor->shape().to_string());
    hash.mix(name(p.tensor->dtype()));
    if (!is_floating(p.tensor->dtype())) continue;
    const LazyTensor flat = reshape(*p.tensor, {p.tensor->numel()});
    parts.push_back(astype(slice(flat, 0, 0, std::min(kFirst, p.tensor->numel())), DType::f32));
  }
  if (!parts.empty())
    for (const float value : concatenate(parts, 0).to_vector<float>())
      hash.mix(std::bit_cast<std::uint32_t>(value));
  return fmt::format("{:016x}{:016x}", hash.hi, hash.lo);
}

}  // namespace caldera::detail
