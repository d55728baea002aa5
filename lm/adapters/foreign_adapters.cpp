#include "lm/adapters/foreign_adapters.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/formats/convert/adapter_matrices.h"
#include "lm/formats/convert/weight_bytes.h"
#include "lm/formats/safetensors/safetensors.h"

namespace caldera::detail {
namespace {

namespace fs = std::filesystem;

/// What the modules of other programs' adapters are, in PEFT's words.
AdapterFactors factors_of(std::vector<AdapterMatrix> matrices, double dropout) {
  AdapterFactors adapter;
  const AdapterMatrix& first = matrices.front();
  adapter.options = {.rank = static_cast<int>(first.rank),
                     .alpha = first.scale * static_cast<double>(first.rank),
                     .dropout = dropout};
  adapter.options.use_dora = !first.magnitude.empty();
  for (AdapterMatrix& m : matrices) {
    const double alpha = m.scale * static_cast<double>(m.rank);
    if (m.rank != first.rank) adapter.options.rank_pattern[m.path] = static_cast<int>(m.rank);
    if (std::abs(alpha - adapter.options.alpha) > 1e-9 * alpha) adapter.options.alpha_pattern[m.path] = alpha;
    adapter.targets.push_back(m.path);
    adapter.factors[m.path + ".lora_A.weight"] = std::move(m.a);
    adapter.factors[m.path + ".lora_B.weight"] = std::move(m.b);
    if (!m.magnitude.empty()) adapter.factors[m.path + ".lora_magnitude_vector"] = std::move(m.magnitude);
  }
  return adapter;
}

std::vector<AdapterMatrix> read_mlx(const fs::path& dir, double& dropout) {
  const std::string where = (dir / kMlxAdapterConfig).string();
  const nlohmann::json object = read_json_object(dir / kMlxAdapterConfig);
  const JsonFields fields(object, where);
  const std::string kind = fields.string("fine_tune_type").value_or("lora");
  if (kind != "lora" && kind != "dora")
    fields.fail("fine_tune_type", fmt::format("is '{}', which is no adapter", printable(kind)));
  if (fields.kind("lora_parameters") != JsonKind::object) fields.fail("lora_parameters", "is missing");
  const JsonFields lora = fields.object("lora_parameters", where);
  const double scale = lora.number("scale").value_or(20.0);  // mlx-lm's default
  if (!(scale > 0) || !std::isfinite(scale)) lora.fail("scale", "is not positive");
  dropout = lora.number("dropout").value_or(0.0);
  if (!(dropout >= 0 && dropout < 1)) lora.fail("dropout", "is not in [0, 1)");

  const SafetensorsFile file = SafetensorsFile::open(dir / kMlxAdapterFile);
  std::vector<AdapterMatrix> matrices;
  for (const std::string& name : file.names()) {
    if (!name.ends_with(".lora_a")) {
      const bool is_other = name.ends_with(".lora_b") || (kind == "dora" && name.ends_with(".m"));
      if (!is_other)
        throw FileError(
            fmt::format("{}: {} is no factor of an adapter", file.path().string(), printable(name)));
      continue;
    }
    const std::string path = name.substr(0, name.size() - std::string_view(".lora_a").size());
    const Shape a = file.info(name).shape, b = file.info(path + ".lora_b").shape;
    if (a.rank() != 2 || b.rank() != 2 || a[1] != b[0] || a[1] < 1)
      throw FileError(fmt::format("{}: lora_a {} and lora_b {} of {} do not go together",
                                  file.path().string(), a.to_string(), b.to_string(), printable(path)));
    AdapterMatrix m{.path = path, .rank = a[1], .in = a[0], .out = b[1], .scale = scale};
    m.a = transposed(file.read_f32(name), m.in, m.rank);
    m.b = transposed(file.read_f32(path + ".lora_b"), m.rank, m.out);
    if (kind == "dora") m.magnitude = file.read_f32(path + ".m");
    matrices.push_back(std::move(m));
  }
  if (matrices.empty()) throw FileError(fmt::format("{}: the adapter is empty", file.path().string()));
  return matrices;
}

}  // namespace

std::optional<AdapterFactors> read_foreign_adapter(const ModelConfig& config, const fs::path& path) {
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) return factors_of(read_gguf_adapter(path, config), 0);
  if (!fs::exists(path / kMlxAdapterFile, ignored) || fs::exists(path / "adapter_model.safetensors", ignored))
    return std::nullopt;
  double dropout = 0;
  std::vector<AdapterMatrix> matrices = read_mlx(path, dropout);
  return factors_of(std::move(matrices), dropout);
}

}  // namespace caldera::detail
