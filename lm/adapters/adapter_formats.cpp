#include "lm/adapters/adapter_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "lm/adapters/adapter_config.h"
#include "lm/adapters/foreign_adapters.h"
#include "lm/adapters/lora.h"
#include "lm/base/atomic_file.h"
#include "lm/base/json_file.h"
#include "lm/formats/convert/adapter_matrices.h"
#include "lm/formats/convert/weight_bytes.h"
#include "lm/formats/safetensors/safetensors.h"
#include "lm/models/causal_lm.h"
#include "lm/models/parameter_files.h"

namespace caldera {
namespace {

namespace fs = std::filesystem;
using detail::AdapterMatrix;

std::vector<AdapterMatrix> matrices_of(CausalLM& model, const AdapterFactors& adapter) {
  std::vector<AdapterMatrix> matrices;
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> widths;
  model.visit_adaptable([&](const std::string& path, const std::string&, std::unique_ptr<Projection>& p) {
    widths[path] = {p->in_features(), p->out_features()};
  });
  for (const auto& [path, options] : lora_modules(model, adapter.options, adapter.targets)) {
    AdapterMatrix m{.path = path,
                    .rank = options.rank,
                    .in = widths[path].first,
                    .out = widths[path].second,
                    .a = adapter.factors.at(path + ".lora_A.weight"),
                    .b = adapter.factors.at(path + ".lora_B.weight"),
                    .scale = options.scaling()};
    if (options.use_dora) m.magnitude = adapter.factors.at(path + ".lora_magnitude_vector");
    matrices.push_back(std::move(m));
  }
  return matrices;
}

/// Tensors whose values the list keeps until they are written.
class FloatTensors {
 public:
  void add(const std::string& name, const Shape& shape, std::vector<float> values) {
    values_.push_back(std::move(values));
    tensors_.push_back({name, DType::f32, shape, std::as_bytes(std::span(values_.back()))});
  }
  std::span<const TensorToWrite> all() const { return tensors_; }

 private:
  std::list<std::vector<float>> values_;
  std::vector<TensorToWrite> tensors_;
};

void write_peft(StagedFiles& files, const fs::path& out, const AdapterFactors& adapter,
                const std::vector<AdapterMatrix>& matrices) {
  constexpr const char* kPrefix = "base_model.model.";
  FloatTensors tensors;
  for (const AdapterMatrix& m : matrices) {
    tensors.add(kPrefix + m.path + ".lora_A.weight", Shape{m.rank, m.in}, m.a);
    tensors.add(kPrefix + m.path + ".lora_B.weight", Shape{m.out, m.rank}, m.b);
    if (!m.magnitude.empty())
      tensors.add(kPrefix + m.path + ".lora_magnitude_vector", Shape{m.out}, m.magnitude);
  }
  AdapterConfig config{.options = adapter.options,
                       .target_modules = adapter.targets,
                       .base_model_name_or_path = adapter.base_model};
  write_safetensors(files, out / "adapter_model.safetensors", tensors.all(), {{"format", "pt"}});
  files.add_text(out / "adapter_config.json", config.to_json());
}

/// mlx-lm's files: one rank and one scale for all, lora_a (in, rank), lora_b (rank, out), and m of DoRA.
void write_mlx(StagedFiles& files, const fs::path& out, const AdapterFactors& adapter,
               const std::vector<AdapterMatrix>& matrices, std::int64_t layers) {
  std::int64_t rank = 0;
  std::int64_t first_layer = layers;
  std::set<std::string> keys;
  for (const AdapterMatrix& m : matrices) {
    rank = std::max(rank, m.rank);
    const std::int64_t layer = layer_of_path(m.path);
    first_layer = std::min(first_layer, std::max<std::int64_t>(0, layer));
    const std::string within = fmt::format(".{}.", layer);
    keys.insert(m.path.substr(m.path.find(within) + within.size()));
  }
  const double scale = matrices.front().scale;
  FloatTensors tensors;
  for (const AdapterMatrix& m : matrices) {
    std::vector<float> a = m.a, b = detail::transposed(m.b, m.out, m.rank);  // rows of both: the rank
    a.resize(static_cast<std::size_t>(rank * m.in));
    b.resize(static_cast<std::size_t>(rank * m.out));
    for (float& value : b) value = static_cast<float>(value * (m.scale / scale));
    tensors.add(m.path + ".lora_a", Shape{m.in, rank}, detail::transposed(a, rank, m.in));
    tensors.add(m.path + ".lora_b", Shape{rank, m.out}, std::move(b));
    if (!m.magnitude.empty()) tensors.add(m.path + ".m", Shape{m.out}, m.magnitude);
  }
  const nlohmann::ordered_json config{
      {"fine_tune_type", adapter.options.use_dora ? "dora" : "lora"},
      {"num_layers", layers - first_layer},
      {"lora_parameters",
       {{"rank", rank}, {"scale", scale}, {"dropout", adapter.options.dropout}, {"keys", keys}}}};
  write_safetensors(files, out / detail::kMlxAdapterFile, tensors.all(), {{"format", "mlx"}});
  files.add_text(out / detail::kMlxAdapterConfig, config.dump(2) + "\n");
}

}  // namespace

void convert_adapter(CausalLM& model, const fs::path& adapter, AdapterFormat to, const fs::path& out) {
  const AdapterFactors read = read_adapter(model, adapter);
  if (read.factors.contains("score.weight"))
    throw FileError(fmt::format("{}: the adapter has a head that scores texts, which is not converted",
                                adapter.string()));
  if (!read.options.modules_to_save.empty() || read.options.bias != LoRABias::none)
    throw FileError(fmt::format(
        "{}: the adapter has parameters of the model's own (modules_to_save, bias), which are not "
        "converted; merge it into a model with 'fuse'",
        adapter.string()));
  if (read.factors.contains("lm_head.lora_A.weight"))
    throw FileError(
        fmt::format("{}: the adapter has factors of the head, which are not converted; merge it into a "
                    "model with 'fuse'",
                    adapter.string()));
  // Both kinds of folders have an adapter_config.json: one would be the end of the other.
  std::error_code ignored;
  const char* const other = to == AdapterFormat::peft ? detail::kMlxAdapterFile : "adapter_model.safetensors";
  if (to != AdapterFormat::gguf && fs::exists(out / other, ignored))
    throw FileError(
        fmt::format("{}: the folder holds an adapter in another format; name another folder", out.string()));
  const std::vector<AdapterMatrix> matrices = matrices_of(model, read);
  StagedFiles files;
  if (to == AdapterFormat::gguf) {
    detail::write_gguf_adapter(files, out, model.config(), matrices);
  } else {
    detail::create_folder(out);
    if (to == AdapterFormat::mlx)
      write_mlx(files, out, read, matrices, model.config().num_hidden_layers);
    else
      write_peft(files, out, read, matrices);
  }
  files.commit();
}

}  // namespace caldera
