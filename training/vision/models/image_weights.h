// Reads and writes the weights of image models as safetensors, with torchvision's names.
#pragma once

#include <filesystem>

#include "lm/nn/module.h"

namespace caldera::vision {

/// Reads weights into a model, in the type that each of its parameters has. "num_batches_tracked" and the
/// heads "aux1", "aux2" of GoogLeNet, which no model here has, are passed over. Throws FileError naming a
/// tensor that is missing, has another shape, or is none of the model's; nothing is changed then.
void load_image_weights(Module& model, const std::filesystem::path& path);

/// Writes all parameters, running statistics among them, atomically. Throws FileError.
void save_image_weights(Module& model, const std::filesystem::path& path);

}  // namespace caldera::vision
