#include "training/nn/gated_mlp.h"

#include <fmt/format.h>

#include "ops/nn/activations.h"

namespace caldera {

SwiGLU::SwiGLU(std::unique_ptr<Projection> gate, std::unique_ptr<Projection> up,
               std::unique_ptr<Projection> down)
    : gate_proj(std::move(gate)), up_proj(std::move(up)), down_proj(std::move(down)) {
  if (gate_proj->in_features() != up_proj->in_features() ||
      gate_proj->out_features() != up_proj->out_features() ||
      down_proj->in_features() != up_proj->out_features() ||
      down_proj->out_features() != up_proj->in_features())
    throw ShapeError(fmt::format("SwiGLU: gate ({} to {}), up ({} to {}) and down ({} to {}) do not fit",
                                 gate_proj->in_features(), gate_proj->out_features(), up_proj->in_features(),
                                 up_proj->out_features(), down_proj->in_features(),
                                 down_proj->out_features()));
}

LazyTensor SwiGLU::forward(const LazyTensor& x) {
  return down_proj->forward(silu(gate_proj->forward(x)) * up_proj->forward(x));
}

void SwiGLU::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.projection(join_name(prefix, "gate_proj"), gate_proj);
  visitor.projection(join_name(prefix, "up_proj"), up_proj);
  visitor.projection(join_name(prefix, "down_proj"), down_proj);
}

}  // namespace caldera
