#include "lm/adapters/adapter_bank.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "lm/models/causal_lm.h"
#include "lm/nn/precision.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"

namespace caldera {

/// Which adapter each row of a batch has, for all projections at once.
struct AdapterBank::Rows {
  LazyTensor slots;  // i32 (batch); undefined: none has any
};

class AdapterBank::BankedLinear final : public Projection {
 public:
  BankedLinear(std::unique_ptr<Projection> base, std::shared_ptr<const Rows> rows)
      : base_(std::move(base)), rows_(std::move(rows)) {}

  LazyTensor forward(const LazyTensor& x) override {
    LazyTensor y = base_->forward(x);
    if (!rows_->slots.defined() || !a_.defined()) return y;
    if (x.rank() != 3 || x.shape(0) != rows_->slots.shape(0))
      throw ShapeError(
          fmt::format("AdapterBank: input {} is not (batch, positions, features) of the {} rows "
                      "that adapters are selected for",
                      x.shape().to_string(), rows_->slots.shape(0)));
    const auto of_rows = [&](const LazyTensor& factors) {
      return transpose(cast_like(take(factors, rows_->slots), x));
    };
    return y + matmul(matmul(x, of_rows(a_)), of_rows(b_));
  }
  std::int64_t in_features() const override { return base_->in_features(); }
  std::int64_t out_features() const override { return base_->out_features(); }
  void visit(const std::string& prefix, ParameterVisitor& visitor) override {
    visitor.module(prefix, *base_);
  }

  void set(LazyTensor a, LazyTensor b) {
    a_ = std::move(a);
    b_ = std::move(b);
  }
  std::unique_ptr<Projection> take_base() { return std::move(base_); }

 private:
  std::unique_ptr<Projection> base_;
  std::shared_ptr<const Rows> rows_;
  LazyTensor a_;  // (slots, rank, in)
  LazyTensor b_;  // (slots, out, rank), scaled
};

AdapterBank::AdapterBank(CausalLM& model) : model_(model), rows_(std::make_shared<Rows>()) {
  std::vector<std::unique_ptr<Projection>*> slots;
  model.visit_projections([&](const std::string&, const std::string&, std::unique_ptr<Projection>& slot) {
    slots.push_back(&slot);
  });
  for (std::unique_ptr<Projection>* slot : slots)
    *slot = std::make_unique<BankedLinear>(std::move(*slot), rows_);
  model.set_training(model.is_training());  // reaches the new modules
}

AdapterBank::~AdapterBank() {
  std::vector<std::unique_ptr<Projection>*> slots;
  model_.visit_projections([&](const std::string&, const std::string&, std::unique_ptr<Projection>& slot) {
    slots.push_back(&slot);
  });
  for (std::unique_ptr<Projection>* slot : slots)
    if (auto* banked = dynamic_cast<BankedLinear*>(slot->get())) *slot = banked->take_base();
}

AdapterBank::AdapterPtr AdapterBank::load(const std::filesystem::path& dir) {
  auto adapter = std::make_shared<Adapter>();
  adapter->files_ = read_adapter(model_, dir);
  if (adapter->files_.options.use_dora)
    throw FileError(
        fmt::format("{}: several adapters together cannot be DoRA's, whose rows have lengths of their own; "
                    "give it alone (--adapter), or merge it into a model",
                    dir.string()));
  if (!adapter->files_.options.modules_to_save.empty() || adapter->files_.options.bias != LoRABias::none)
    throw FileError(fmt::format(
        "{}: several adapters together cannot have parameters of the model's own (modules_to_save, "
        "bias); give it alone (--adapter), or merge it into a model",
        dir.string()));
  for (auto& [path, own] : lora_modules(model_, adapter->files_.options, adapter->files_.targets))
    adapter->modules_.emplace(path, own);
  if (adapter->modules_.contains("lm_head"))
    throw FileError(fmt::format(
        "{}: several adapters together cannot have factors of the head; give it alone (--adapter), or "
        "merge it into a model",
        dir.string()));
  std::vector<std::weak_ptr<const Adapter>> slots = slots_;
  auto slot = std::find_if(slots.begin(), slots.end(), [](const auto& held) { return held.expired(); });
  if (slot == slots.end()) slot = slots.insert(slots.end(), std::weak_ptr<const Adapter>());
  adapter->slot_ = static_cast<std::int32_t>(slot - slots.begin()) + 1;
  *slot = adapter;
  rebuild(slots);
  slots_ = std::move(slots);
  return adapter;
}

/// Makes the factors of all adapters in `slots`, and only then gives them to the projections.
void AdapterBank::rebuild(const std::vector<std::weak_ptr<const Adapter>>& slots) {
  std::vector<AdapterPtr> adapters;
  for (const auto& held : slots)
    if (AdapterPtr adapter = held.lock()) adapters.push_back(std::move(adapter));
  struct Factors {
    BankedLinear* of;
    LazyTensor a, b;
  };
  std::vector<Factors> made;
  std::size_t rank = 1;
  for (const AdapterPtr& adapter : adapters) {
    for (const auto& [path, own] : adapter->modules_)
      rank = std::max(rank, static_cast<std::size_t>(own.rank));
  }
  const std::size_t count = std::bit_ceil(slots.size() + 1);
  model_.visit_projections([&](const std::string& path, const std::string&,
                               std::unique_ptr<Projection>& slot) {
    auto& banked = dynamic_cast<BankedLinear&>(*slot);
    const auto in = static_cast<std::size_t>(banked.in_features());
    const auto out = static_cast<std::size_t>(banked.out_features());
    std::vector<float> a, b;
    for (const AdapterPtr& adapter : adapters) {
      const auto& factors = adapter->files_.factors;
      const auto from_a = factors.find(path + ".lora_A.weight");
      if (from_a == factors.end()) continue;
      const std::vector<float>& from_b = factors.at(path + ".lora_B.weight");
      a.resize(count * rank * in);
      b.resize(count * out * rank);
      const auto at = static_cast<std::size_t>(adapter->slot());
      const LoRAOptions& options = adapter->modules_.at(path);
      const auto own = static_cast<std::size_t>(options.rank);
      const auto scaling = static_cast<float>(options.scaling());
      std::copy(from_a->second.begin(), from_a->second.end(),
                a.begin() + static_cast<std::ptrdiff_t>(at * rank * in));
      for (std::size_t o = 0; o < out; ++o)
        for (std::size_t r = 0; r < own; ++r) b[(at * out + o) * rank + r] = scaling * from_b[o * own + r];
    }
    Factors& factors = made.emplace_back(Factors{&banked, {}, {}});
    if (a.empty()) return;
    const auto extent = [](std::size_t n) { return static_cast<std::int64_t>(n); };
    factors.a = LazyTensor::from_vector(a, Shape{extent(count), extent(rank), extent(in)}, model_.device());
    factors.b = LazyTensor::from_vector(b, Shape{extent(count), extent(out), extent(rank)}, model_.device());
  });
  for (Factors& factors : made) factors.of->set(std::move(factors.a), std::move(factors.b));
}

void AdapterBank::select(std::span<const std::int32_t> slots) {
  const bool any = std::any_of(slots.begin(), slots.end(), [](std::int32_t slot) { return slot != 0; });
  rows_->slots =
      any ? LazyTensor::from_span(slots, Shape{static_cast<std::int64_t>(slots.size())}, model_.device())
          : LazyTensor();
}

}  // namespace caldera
