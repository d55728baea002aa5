#include "lm/nn/feed_forward/gated_mlp.h"

#include <fmt/format.h>

#include "ops/core/slicing.h"

namespace caldera {

GatedMLP::GatedMLP(std::unique_ptr<Projection> gate, std::unique_ptr<Projection> up,
                   std::unique_ptr<Projection> down, Activation activation)
    : gate_proj(std::move(gate)),
      up_proj(std::move(up)),
      down_proj(std::move(down)),
      activation_(activation) {
  if (gate_proj->in_features() != up_proj->in_features() ||
      gate_proj->out_features() != up_proj->out_features() ||
      down_proj->in_features() != up_proj->out_features() ||
      down_proj->out_features() != up_proj->in_features())
    throw ShapeError(fmt::format("GatedMLP: gate ({} to {}), up ({} to {}) and down ({} to {}) do not fit",
                                 gate_proj->in_features(), gate_proj->out_features(), up_proj->in_features(),
                                 up_proj->out_features(), down_proj->in_features(),
                                 down_proj->out_features()));
}

LazyTensor GatedMLP::forward(const LazyTensor& x) {
  return down_proj->forward(activation_(gate_proj->forward(x)) * up_proj->forward(x));
}

void GatedMLP::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.projection(join_name(prefix, "gate_proj"), gate_proj);
  visitor.projection(join_name(prefix, "up_proj"), up_proj);
  visitor.projection(join_name(prefix, "down_proj"), down_proj);
}

FusedGatedMLP::FusedGatedMLP(std::string in_name, std::unique_ptr<Projection> in, std::string out_name,
                             std::unique_ptr<Projection> out, Activation activation)
    : in_name_(std::move(in_name)),
      out_name_(std::move(out_name)),
      in_(std::move(in)),
      out_(std::move(out)),
      activation_(activation) {
  if (in_->out_features() != 2 * out_->in_features() || in_->in_features() != out_->out_features())
    throw ShapeError(fmt::format("FusedGatedMLP: {} ({} to {}) and {} ({} to {}) do not fit", in_name_,
                                 in_->in_features(), in_->out_features(), out_name_, out_->in_features(),
                                 out_->out_features()));
}

LazyTensor FusedGatedMLP::forward(const LazyTensor& x) {
  const LazyTensor both = in_->forward(x);
  const std::int64_t width = out_->in_features();
  return out_->forward(activation_(slice(both, -1, 0, width)) * slice(both, -1, width, 2 * width));
}

void FusedGatedMLP::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.projection(join_name(prefix, in_name_), in_);
  visitor.projection(join_name(prefix, out_name_), out_);
}

}  // namespace caldera
