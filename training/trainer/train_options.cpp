#include "training/trainer/train_options.h"

#include <cmath>

#include "engine/base/error.h"

namespace caldera {

void TrainOptions::validate() const {
  const auto require = [](bool ok, const char* message) {
    if (!ok) throw ValueError(message);
  };
  require(iterations >= 1, "training: iterations must be at least 1");
  require(batch_size >= 1, "training: batch_size must be at least 1");
  require(grad_accumulation >= 1, "training: grad_accumulation must be at least 1");
  require(warmup >= 0, "training: warmup must not be negative");
  require(std::isfinite(max_grad_norm) && max_grad_norm >= 0, "training: max_grad_norm must not be negative");
  require(std::isfinite(max_grad_value) && max_grad_value >= 0,
          "training: max_grad_value must not be negative");
  require(ema_decay >= 0 && ema_decay < 1, "training: ema_decay must be in [0, 1)");
  require(val_every >= 0, "training: val_every must not be negative");
  require(save_every >= 0, "training: save_every must not be negative");
  require(patience >= 0, "training: patience must not be negative");
  require(val_batches == -1 || val_batches >= 1, "training: val_batches must be at least 1, or -1 for all");
  require(sharing.sync_every >= 0, "training: sync_every must not be negative");
  require(sharing.outer_learning_rate > 0 && std::isfinite(sharing.outer_learning_rate),
          "training: outer_learning_rate must be positive");
  require(sharing.outer_momentum >= 0 && sharing.outer_momentum < 1,
          "training: outer_momentum must be in [0, 1)");
  require(sharing.gradient_type == DType::f32 || sharing.gradient_type == DType::bf16,
          "training: gradient_type must be f32 or bf16");
  require(sharing.top_share > 0 && sharing.top_share <= 1, "training: top_share must be in (0, 1]");
  const bool is_coded = sharing.gradient_type != DType::f32 || sharing.top_share < 1;
  require(
      sharing.sync_every == 0 || !(is_coded || sharing.shard_optimizer),
      "training: with sync_every gradients are not sent and every rank needs its optimiser's state: leave "
      "out gradient_type, top_share and shard_optimizer");
  loss_scaling.validate();
}

}  // namespace caldera
