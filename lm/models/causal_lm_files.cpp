// Reading and writing Hugging Face model folders.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "lm/base/atomic_file.h"
#include "lm/formats/config/read_config.h"
#include "lm/formats/model_files.h"
#include "lm/formats/safetensors/tensor_problems.h"
#include "lm/models/causal_lm.h"
#include "lm/models/parameter_files.h"
#include "ops/quantized/quantized_products.h"

namespace caldera {

bool CausalLM::is_harmless(const std::string& name) const {
  if (!module_.empty() && !name.starts_with(module_)) return true;
  return name.ends_with(".rotary_emb.inv_freq") || (name == "lm_head.weight" && config().tie_word_embeddings);
}

namespace {

/// A weight of a model, and whether its module can use it quantised.
struct Place {
  std::string name;
  Weight* weight;
  bool takes_quantized;
};

std::vector<Place> places_of(Module& model) {
  class Collector final : public ParameterVisitor {
   public:
    void parameter(const std::string& name, Weight& weight) override { add(name, weight, false); }
    void matrix(const std::string& name, Weight& weight) override { add(name, weight, true); }
    std::vector<Place> found;

   private:
    void add(const std::string& name, Weight& weight, bool takes_quantized) {
      if (weight.is_quantized() || weight.tensor.defined()) found.push_back({name, &weight, takes_quantized});
    }
  };
  Collector collector;
  model.visit({}, collector);
  return std::move(collector.found);
}

/// Some quantisers give every layer a bias.
bool is_bias_of_zeros(const ModelFiles& files, const std::string& name) {
  if (!name.ends_with(".bias") || !files.weight(name).is_floating()) return false;
  return std::ranges::all_of(files.weight(name).values(), [](float v) { return v == 0; });
}

void load(const StoredWeight& stored, const Place& place, DType dtype, HalfWeights halves, Device device) {
  Weight& weight = *place.weight;
  const WeightTarget target(device, halves == HalfWeights::mapped);
  if (place.takes_quantized) {
    std::optional<QuantizedTensor> quantized = stored.read_quantized(target);
    // In 16 bits the model's own products take the matrix.
    if (!quantized && halves != HalfWeights::converted && dtype == DType::f32)
      quantized = stored.read_halves(target, false);
    if (quantized) {
      weight = {.tensor = {}, .trainable = false, .quantized = *std::move(quantized)};
      return;
    }
  }
  weight.quantized = {};
  weight.tensor = {};  // first the old value goes, then the new one comes
  weight.tensor = stored.read(dtype, target);
}

}  // namespace

HalfWeights halves_for_inference(Device device) {
  return device.kind == DeviceKind::cpu ? HalfWeights::mapped : HalfWeights::converted;
}

void CausalLM::load_weights(const std::filesystem::path& path, DType dtype, HalfWeights halves) {
  load_weights(ModelFiles::open(path), dtype, halves);
}

void CausalLM::check_weights(const ModelFiles& files) {
  // One line about everything that does not fit, so that a wrong checkpoint is understood at once.
  detail::TensorProblems problems;
  std::unordered_set<std::string> expected;
  for (const Place& p : places_of(*this)) {
    const std::string name = name_in(files, p.name);
    expected.insert(name);
    if (!files.contains(name)) {
      problems.missing(p.name, p.weight->shape());
      continue;
    }
    const StoredWeight& stored = files.weight(name);
    problems.check(name, p.weight->shape(), stored.shape(), stored.is_floating(), stored.type());
  }
  for (const std::string& name : files.names())
    if (!expected.contains(name) && !is_harmless(name) && !is_bias_of_zeros(files, name))
      problems.unexpected(name);
  problems.throw_if_any(files.path().string() + ": the weights do not fit config.json");
}

std::string CausalLM::name_in(const ModelFiles& files, const std::string& name) const {
  return files.contains(name) ? name : stored_name(name);
}

void CausalLM::load_weights(const ModelFiles& files, DType dtype, HalfWeights halves) {
  check_weights(files);
  check_dtype(dtype);
  dtype_ = dtype;
  for (const Place& p : places_of(*this))
    load(files.weight(name_in(files, p.name)), p, dtype, halves, device_);
  set_training(false);
}

void CausalLM::set_activations(Activations activations) {
  for (const Place& p : places_of(*this)) {
    QuantizedTensor& q = p.weight->quantized;
    q = activations == Activations::rounded ? interleaved(q) : separated(q);
    q.activations = activations;
  }
}

void CausalLM::save(const std::filesystem::path& dir) {
  StagedFiles files;
  save(dir, files);
  files.commit();
}

void CausalLM::save(const std::filesystem::path& dir, StagedFiles& files) {
  std::vector<LazyTensor> floats;  // of quantised weights
  std::vector<Parameter> base;
  const std::vector<Place> places = places_of(*this);
  floats.reserve(places.size());
  for (const Place& p : places) {
    LazyTensor* tensor = p.weight->base.defined() ? &p.weight->base : &p.weight->tensor;
    if (p.weight->is_quantized()) tensor = &floats.emplace_back(dequantize(p.weight->quantized, dtype_));
    base.push_back({p.name, tensor, p.weight->trainable});
  }
  std::erase_if(base, detail::is_lora_factor);
  detail::create_folder(dir);
  detail::write_parameters(files, dir / "model.safetensors", base, "");
  ModelConfig written = config();
  written.torch_dtype = name(base.front().tensor->dtype());
  files.add_text(dir / "config.json", detail::config_json(written, own_fields()));
}

}  // namespace caldera
