#include "training/trainer/rank_share.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstddef>

#include "engine/base/error.h"
#include "engine/base/hash.h"
#include "engine/distributed/communicator.h"
#include "engine/distributed/fixed_tree.h"
#include "engine/runtime/runtime.h"
#include "lm/models/causal_lm.h"
#include "ops/core/cast.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/shape/joining.h"

namespace caldera::detail {

RankShare::RankShare(const TrainOptions& options) : options_(options) {
  if (options.grad_accumulation < size())
    throw ValueError(fmt::format(
        "training: {} ranks share a step of {} batches: give at least as many (grad_accumulation), "
        "or fewer ranks",
        size(), options.grad_accumulation));
  if (options.sharing.base_is_sharded && options.grad_accumulation % size() != 0)
    throw ValueError(fmt::format(
        "training: {} ranks that share the weights must compute as many batches each: make grad_accumulation "
        "({}) a multiple of their number",
        size(), options.grad_accumulation));
  batches_ = distributed::leaves_of_rank(options.grad_accumulation, rank(), size());
}

int RankShare::rank() const { return options_.ranks != nullptr ? options_.ranks->rank() : 0; }
int RankShare::size() const { return options_.ranks != nullptr ? options_.ranks->size() : 1; }

void RankShare::learn_names() {
  if (is_alone()) return;
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const std::string own = host;
  hosts_.clear();
  for (const std::vector<std::byte>& name : options_.ranks->gather(std::as_bytes(std::span(own))))
    hosts_.emplace_back(reinterpret_cast<const char*>(name.data()), name.size());
}

std::string RankShare::name_of(int rank) const {
  const auto i = static_cast<std::size_t>(rank);
  return i < hosts_.size() ? fmt::format("rank {} of {}", rank, hosts_[i]) : fmt::format("rank {}", rank);
}

std::int64_t RankShare::counted(std::int64_t total,
                                const std::function<std::int64_t(std::size_t batch)>& count) const {
  if (options_.sharing.sync_every == 0) return total;
  std::int64_t own = 0;
  for (std::int64_t i = batches_.first; i < batches_.second; ++i) own += count(static_cast<std::size_t>(i));
  return std::max<std::int64_t>(1, own);
}

int RankShare::sums_due(std::int64_t batch) const {
  return distributed::sums_due(batch - batches_.first, batches_.second - batches_.first);
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
