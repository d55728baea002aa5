// Reading and writing Hugging Face model folders.
#include <fmt/format.h>

#include <unordered_set>

#include "training/io/atomic_file.h"
#include "training/io/model_weights.h"
#include "training/io/safetensors.h"
#include "training/models/llama.h"
#include "training/nn/precision.h"
#include "training/nn/tensor_files.h"

namespace caldera {
namespace {

bool is_harmless(const std::string& name, const ModelConfig& config) {
  return name.ends_with(".rotary_emb.inv_freq") || (name == "lm_head.weight" && config.tie_word_embeddings);
}

/// One line about everything that does not fit, so that a wrong checkpoint is understood at once.
void check_tensors(const ModelWeights& weights, const std::vector<Parameter>& parameters,
                   const ModelConfig& config, const std::filesystem::path& dir) {
  detail::TensorProblems problems;
  std::unordered_set<std::string> expected;
  for (const Parameter& p : parameters) {
    expected.insert(p.name);
    if (!weights.contains(p.name))
      problems.missing(p.name, p.tensor->shape());
    else
      problems.check(p.name, p.tensor->shape(), weights.info(p.name));
  }
  for (const std::string& name : weights.names())
    if (!expected.contains(name) && !is_harmless(name, config)) problems.unexpected(name);
  problems.throw_if_any(dir.string() + ": the weights do not fit config.json");
}

}  // namespace

std::unique_ptr<Llama> Llama::load(const std::filesystem::path& dir, Device device, DType dtype) {
  const ModelConfig config = ModelConfig::from_file(dir / "config.json");
  const ModelWeights weights = ModelWeights::open(dir);
  std::unique_ptr<Llama> model(new Llama(Unset{}, config, device, 0));
  const std::vector<Parameter> parameters = model->parameters();
  check_tensors(weights, parameters, config, dir);
  model->check_dtype(dtype);
  model->dtype_ = dtype;
  for (const Parameter& p : parameters) {
    *p.tensor = LazyTensor::from_vector(weights.read_f32(p.name), p.tensor->shape(), device);
    if (dtype != DType::f32) detail::convert(*p.tensor, dtype);
  }
  model->set_training(false);
  return model;
}

void Llama::save(const std::filesystem::path& dir) {
  StagedFiles files;
  save(dir, files);
  files.commit();
}

void Llama::save(const std::filesystem::path& dir, StagedFiles& files) {
  std::vector<Parameter> base = parameters();
  std::erase_if(base, [](const Parameter& p) {
    return p.name.ends_with(".lora_A.weight") || p.name.ends_with(".lora_B.weight");
  });
  detail::create_folder(dir);
  detail::write_parameters(files, dir / "model.safetensors", base, "");
  ModelConfig written = config_;
  written.torch_dtype = name(embed_tokens_.weight().dtype());
  files.add_text(dir / "config.json", written.to_json());
}

}  // namespace caldera
