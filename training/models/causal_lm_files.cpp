// Reading and writing Hugging Face model folders.
#include <fmt/format.h>

#include <unordered_set>

#include "training/io/atomic_file.h"
#include "training/io/model_weights.h"
#include "training/io/safetensors.h"
#include "training/io/tensor_problems.h"
#include "training/models/causal_lm.h"
#include "training/models/parameter_files.h"
#include "training/nn/precision.h"

namespace caldera {

bool CausalLM::is_harmless(const std::string& name) const {
  if (!module_.empty() && !name.starts_with(module_)) return true;
  return name.ends_with(".rotary_emb.inv_freq") || (name == "lm_head.weight" && config().tie_word_embeddings);
}

void CausalLM::load_weights(const std::filesystem::path& dir, DType dtype) {
  const ModelWeights weights = ModelWeights::open(dir);
  const std::vector<Parameter> all = parameters();
  // One line about everything that does not fit, so that a wrong checkpoint is understood at once.
  detail::TensorProblems problems;
  std::unordered_set<std::string> expected;
  const auto stored = [&](const Parameter& p) {
    return weights.contains(p.name) ? p.name : stored_name(p.name);
  };
  for (const Parameter& p : all) {
    const std::string name = stored(p);
    expected.insert(name);
    if (!weights.contains(name))
      problems.missing(p.name, p.tensor->shape());
    else
      problems.check(name, p.tensor->shape(), weights.info(name));
  }
  for (const std::string& name : weights.names())
    if (!expected.contains(name) && !is_harmless(name)) problems.unexpected(name);
  problems.throw_if_any(dir.string() + ": the weights do not fit config.json");

  check_dtype(dtype);
  dtype_ = dtype;
  for (const Parameter& p : all) {
    *p.tensor = LazyTensor::from_vector(weights.read_f32(stored(p)), p.tensor->shape(), device_);
    if (dtype != DType::f32) detail::convert(*p.tensor, dtype);
  }
  set_training(false);
}

void CausalLM::save(const std::filesystem::path& dir) {
  StagedFiles files;
  save(dir, files);
  files.commit();
}

void CausalLM::save(const std::filesystem::path& dir, StagedFiles& files) {
  std::vector<Parameter> base = parameters();
  std::erase_if(base, detail::is_lora_factor);
  detail::create_folder(dir);
  detail::write_parameters(files, dir / "model.safetensors", base, "");
  ModelConfig written = config();
  written.torch_dtype = name(base.front().tensor->dtype());
  files.add_text(dir / "config.json", detail::config_json(written, own_fields()));
}

}  // namespace caldera
