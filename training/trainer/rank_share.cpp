#include "training/trainer/rank_share.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "engine/base/error.h"
#include "engine/base/hash.h"
#include "engine/distributed/communicator.h"
#include "engine/distributed/fixed_tree.h"
#include "engine/runtime/runtime.h"
#include "engine/tensor/dispatch.h"
#include "lm/models/causal_lm.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/quantized/quantized_tensor.h"

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

namespace {

/// Hashes what weights hold: all of it, or of large models chunks that are spread evenly.
class WeightHash final : public ParameterVisitor {
 public:
  explicit WeightHash(std::int64_t elements)
      : stride_(kChunk * std::max<std::int64_t>(1, elements / kMost)) {}

  void parameter(const std::string& name, Weight& weight) override {
    if (weight.tensor.defined()) add(name, weight.tensor);
  }
  void matrix(const std::string& name, Weight& weight) override {
    if (!weight.is_quantized()) return parameter(name, weight);
    // Rows are interleaved where that is fast, which is a device's own affair.
    const QuantizedTensor separate = separated(weight.quantized);
    hash.mix(std::string_view(caldera::name(separate.layout.format)));
    for (const LazyTensor& part : separate.parts) add(name, part);
  }
  Hash128 hash;

 private:
  static constexpr std::int64_t kChunk = 1 << 16;
  static constexpr std::int64_t kMost = 1 << 28;  // elements, which take a second or two

  void add(const std::string& name, const LazyTensor& x) {
    hash.mix(name);
    hash.mix(x.shape().to_string());
    hash.mix(caldera::name(x.dtype()));
    const LazyTensor flat = reshape(x, {x.numel()});
    for (std::int64_t begin = 0; begin < x.numel(); begin += stride_) {
      const LazyTensor chunk = slice(flat, 0, begin, std::min(begin + kChunk, x.numel())).to(Device::cpu());
      dispatch(x.dtype(), [&]<class T>() { mix(chunk.to_vector<T>()); });
    }
  }
  template <class T>
  void mix(const std::vector<T>& values) {
    PartHash part(values.size(), sizeof(T));
    std::uint64_t word = 0;
    std::size_t filled = 0;
    for (const T value : values) {
      std::memcpy(reinterpret_cast<std::byte*>(&word) + filled, &value, sizeof(T));
      filled = (filled + sizeof(T)) % sizeof word;
      if (filled == 0) part.mix(word);
    }
    part.mix(word);
    hash.mix_both(part.lo, part.hi);
  }

  std::int64_t stride_;
};

}  // namespace

std::string fingerprint_of(CausalLM& model) {
  WeightHash weights(model.parameter_count());
  model.visit({}, weights);
  Hash128& hash = weights.hash;
  const ModelConfig& config = model.config();
  hash.mix(config.model_type);
  hash.mix(config.hidden_act);
  for (const std::int64_t number : {config.num_attention_heads, config.num_key_value_heads, config.head_dim,
                                    config.max_positions(), config.sliding_window.value_or(0)})
    hash.mix(static_cast<std::uint64_t>(number));
  for (const double number : {config.rms_norm_eps, config.rope_theta})
    hash.mix(std::bit_cast<std::uint64_t>(number));
  return fmt::format("{:016x}{:016x}", hash.hi, hash.lo);
}

}  // namespace caldera::detail
