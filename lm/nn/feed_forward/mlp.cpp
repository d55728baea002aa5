#include "lm/nn/feed_forward/mlp.h"

#include <fmt/format.h>

namespace caldera {

MLP::MLP(std::string in_name, std::unique_ptr<Projection> in, std::string out_name,
         std::unique_ptr<Projection> out, Activation activation)
    : in_name_(std::move(in_name)),
      out_name_(std::move(out_name)),
      in_(std::move(in)),
      out_(std::move(out)),
      activation_(activation) {
  if (in_->out_features() != out_->in_features() || out_->out_features() != in_->in_features())
    throw ShapeError(fmt::format("MLP: {} ({} to {}) and {} ({} to {}) do not fit", in_name_,
                                 in_->in_features(), in_->out_features(), out_name_, out_->in_features(),
                                 out_->out_features()));
}

LazyTensor MLP::forward(const LazyTensor& x) { return out_->forward(activation_(in_->forward(x))); }

void MLP::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.projection(join_name(prefix, in_name_), in_);
  visitor.projection(join_name(prefix, out_name_), out_);
}

}  // namespace caldera
