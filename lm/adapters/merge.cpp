#include "lm/adapters/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "lm/adapters/lora.h"
#include "lm/adapters/whole_parameters.h"
#include "lm/base/atomic_file.h"
#include "lm/base/temporary_name.h"
#include "lm/formats/model_files.h"
#include "lm/models/causal_lm.h"
#include "lm/models/registry.h"
#include "ops/ops.h"
#include "ops/quantized/quantized_products.h"

namespace caldera {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTokensCompared = 32;

/// A folder that goes when the object does.
class PassingFolder {
 public:
  explicit PassingFolder(const fs::path& near)
      : path_(fs::absolute(near).parent_path() / detail::temporary_name("fuse")) {}
  ~PassingFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  PassingFolder(const PassingFolder&) = delete;
  PassingFolder& operator=(const PassingFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// The matrix of a projection: the first weight that it reports.
Weight& matrix_of(Projection& projection) {
  class Finder final : public ParameterVisitor {
   public:
    void parameter(const std::string&, Weight& weight) override {
      if (found == nullptr && weight.shape().rank() == 2) found = &weight;
    }
    Weight* found = nullptr;
  };
  Finder finder;
  projection.visit({}, finder);
  if (finder.found == nullptr)
    throw ValueError(
        "merge_adapter: a module has no matrix of its own to merge into, as a head that is the embedding");
  return *finder.found;
}

/// Whether the module keeps its matrix as (in, out): some families do, and a square one does not show it.
bool is_transposed(Projection& base, const LazyTensor& matrix) {
  if (matrix.shape(0) != matrix.shape(1)) return matrix.shape(0) == base.in_features();
  const LazyTensor unit = eye(1, base.in_features(), 0, DType::f32, matrix.device());
  const LazyTensor zero = zeros_like(unit);
  const LazyTensor column = squeeze(base.forward(unit) - base.forward(zero), 0);
  const auto distance = [&](const LazyTensor& other) { return sum(abs(column - other)).item<float>(); };
  return distance(squeeze(slice(matrix, 0, 0, 1), 0)) < distance(squeeze(slice(matrix, 1, 0, 1), 1));
}

void merge(LoRALinear& lora, double weight) {
  if (weight != 1 && lora.options().use_dora)
    throw ValueError("merge_adapter: DoRA changes the length of rows, which has no part; give the weight 1");
  const LazyTensor change = lora.weight_change() * weight;
  Weight& own = matrix_of(lora.base());
  const LazyTensor matrix = astype(own.is_quantized() ? dequantize(own.quantized) : own.tensor, DType::f32);
  LazyTensor merged = matrix + (is_transposed(lora.base(), matrix) ? transpose(change) : change);
  merged.eval();
  own.tensor = merged;
  own.quantized = {};
}

std::vector<float> some_logits(CausalLM& model) {
  const ModelConfig& config = model.config();
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < std::min(kTokensCompared, config.max_positions()); ++i)
    ids.push_back(static_cast<std::int32_t>((i * 7919 + 1) % config.vocab_size));
  return model.forward(model.make_ids(ids)).to_vector<float>();
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return largest;
}

/// The type that most of the model's matrices have, in the words of weight_types(): of floats the narrowest
/// that holds them.
std::string type_of(const fs::path& path) {
  std::map<std::string, std::int64_t> elements;
  const ModelFiles files = ModelFiles::open(path);
  for (const std::string& name : files.names()) {
    const StoredWeight& weight = files.weight(name);
    if (weight.shape().rank() != 2 || !weight.is_floating()) continue;
    const DType natural = weight.natural_dtype();
    const bool is_plain = weight.type() == caldera::name(natural);
    const std::string floats = natural == DType::bf16 ? "bf16" : natural == DType::f16 ? "f16" : "f32";
    elements[is_plain ? floats : weight.type()] += weight.shape().numel();
  }
  const auto most = std::ranges::max_element(elements, {}, [](const auto& entry) { return entry.second; });
  return most == elements.end() ? "f32" : most->first;
}

/// The type to write: the model's, where the format has it, else f32, which loses nothing, or the format's
/// own.
std::string written_type(const std::string& of_model, ModelFormat to) {
  const std::vector<std::string> types = weight_types(to);
  for (const std::string& type : {of_model, std::string("f32")})
    if (std::ranges::find(types, type) != types.end()) return type;
  return types.front();
}

}  // namespace

std::size_t merge_adapter(CausalLM& model, double weight) {
  std::vector<std::unique_ptr<Projection>*> slots;
  model.visit_adaptable([&](const std::string&, const std::string&, std::unique_ptr<Projection>& slot) {
    if (dynamic_cast<LoRALinear*>(slot.get()) != nullptr) slots.push_back(&slot);
  });
  if (slots.empty()) throw ValueError("merge_adapter: the model has no adapter");
  for (std::unique_ptr<Projection>* slot : slots) matrix_of(dynamic_cast<LoRALinear&>(**slot).base());
  for (std::unique_ptr<Projection>* slot : slots) {
    auto& lora = dynamic_cast<LoRALinear&>(**slot);
    merge(lora, weight);
    *slot = lora.take_base();
  }
  detail::merge_whole(model, weight);
  return slots.size();
}

Fused fuse_model(const fs::path& path, const fs::path& out, const FuseOptions& options, Device device) {
  if (options.adapters.empty()) throw ValueError("fuse: no adapter is given");
  Fused fused{.out = out, .model_type = type_of(path)};
  fused.type = options.type.empty() ? written_type(fused.model_type, options.to) : options.type;
  const std::unique_ptr<CausalLM> model = load_causal_lm(path, device);
  std::vector<float> beside;
  for (const WeightedPath& adapter : options.adapters) {
    load_adapter(*model, adapter.path);
    model->set_training(false);
    if (options.adapters.size() == 1 && adapter.weight == 1) beside = some_logits(*model);
    fused.merged_modules += merge_adapter(*model, adapter.weight);
  }
  if (beside.empty()) beside = some_logits(*model);
  // As a folder of floats first, then in its form.
  const PassingFolder whole(out);
  StagedFiles files;
  model->save(whole.path(), files);
  add_tokenizer_files(files, path, whole.path());
  files.commit();
  convert_model(whole.path(), out, {.to = options.to, .type = fused.type});
  fused.largest_logit_difference = largest_difference(beside, some_logits(*load_causal_lm(out, device)));
  return fused;
}

}  // namespace caldera
