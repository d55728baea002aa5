#include "cli/training/reference_flags.h"

#include <fmt/format.h>

#include "cli/files/inputs.h"

namespace caldera::cli {

void ReferenceFlags::declare(Arguments& args) {
  const Option reference =
      args.option(
              "--reference-model", reference_,
              "What dpo and its like compare with: a model with the same tokens (default: the model without "
              "its adapter)")
          .type_name("PATH");
  args.option("--teacher", teacher_, "The model that distillation learns from, with the same tokens")
      .type_name("PATH")
      .excludes(reference);
}

std::unique_ptr<CausalLM> ReferenceFlags::load(const CausalLM& model, DType dtype) const {
  const bool is_teacher = !teacher_.empty();
  const std::string& path = is_teacher ? teacher_ : reference_;
  if (path.empty()) return nullptr;
  std::unique_ptr<CausalLM> second = open_model(path, model.device());
  load_weights(*second, path, {}, dtype);  // computes just what the model itself does
  if (second->config().vocab_size != model.config().vocab_size)
    throw ValueError(
        fmt::format("{} {}: a vocabulary of {}, where the model has {}; give a model with the same tokenizer",
                    is_teacher ? "--teacher" : "--reference-model", path, second->config().vocab_size,
                    model.config().vocab_size));
  second->freeze();
  return second;
}

}  // namespace caldera::cli
