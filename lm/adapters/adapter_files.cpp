// Adapters in PEFT's format.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "lm/adapters/adapter_config.h"
#include "lm/adapters/foreign_adapters.h"
#include "lm/adapters/lora.h"
#include "lm/adapters/whole_parameters.h"
#include "lm/base/atomic_file.h"
#include "lm/base/staged_folder.h"
#include "lm/base/unicode/utf8.h"
#include "lm/formats/safetensors/safetensors.h"
#include "lm/formats/safetensors/tensor_problems.h"
#include "lm/models/causal_lm.h"
#include "lm/models/parameter_files.h"

namespace caldera {
namespace {

// PEFT wraps the model in two modules, both called "model": base_model.model.<name in the model>.
constexpr const char* kPrefix = "base_model.model.";
constexpr const char* kScore = "score.weight";
constexpr const char* kConfigFile = "adapter_config.json";
constexpr const char* kWeightsFile = "adapter_model.safetensors";

/// The factors that an adapter with these options and targets has, by the names in its file.
std::vector<std::pair<std::string, Shape>> expected_factors(CausalLM& model, const LoRAOptions& options,
                                                            const std::vector<std::string>& targets) {
  std::unordered_map<std::string, LoRAOptions> modules;
  for (auto& [path, own] : lora_modules(model, options, targets)) modules.emplace(path, own);
  std::vector<std::pair<std::string, Shape>> factors;
  model.visit_adaptable([&](const std::string& path, const std::string&, std::unique_ptr<Projection>& p) {
    const auto own = modules.find(path);
    if (own == modules.end()) return;
    factors.emplace_back(kPrefix + path + ".lora_A.weight", Shape{own->second.rank, p->in_features()});
    factors.emplace_back(kPrefix + path + ".lora_B.weight", Shape{p->out_features(), own->second.rank});
    if (own->second.use_dora)
      factors.emplace_back(kPrefix + path + ".lora_magnitude_vector", Shape{p->out_features()});
  });
  return factors;
}

/// What the adapter of these options has of the model's own parameters.
std::vector<detail::WholeParameter> expected_whole(CausalLM& model, const LoRAOptions& options,
                                                   const std::vector<std::string>& targets) {
  std::vector<std::string> adapted;
  for (auto& [path, own] : lora_modules(model, options, targets)) adapted.push_back(path);
  return detail::whole_parameters(model, options, adapted);
}

/// What is written of the adapter: its factors on the base as it is published, and what they are.
struct Written {
  std::deque<LazyTensor> tensors;
  std::vector<Parameter> factors;
  LoRARequest request;
  std::size_t modules = 0;
};

Written written_adapter(CausalLM& model) {
  Written w;
  const auto add = [&](const std::string& name, const LazyTensor& tensor) {
    w.tensors.push_back(tensor);
    w.factors.push_back({.name = name, .tensor = &w.tensors.back()});
  };
  std::vector<std::string> names;
  model.visit_adaptable(
      [&](const std::string& path, const std::string& name, std::unique_ptr<Projection>& slot) {
        auto* lora = dynamic_cast<LoRALinear*>(slot.get());
        if (lora == nullptr) return;
        ++w.modules;
        const LoRALinear::Published p = lora->published();
        add(path + ".lora_A.weight", p.a);
        add(path + ".lora_B.weight", p.b);
        if (lora->magnitude().defined()) add(path + ".lora_magnitude_vector", lora->magnitude());
        if (lora->request() != nullptr) {
          w.request = *lora->request();
          const double alphas = p.options.alpha / lora->options().alpha;  // PiSSA's are others
          const int ranks = p.options.rank / lora->options().rank;
          w.request.options.init = p.options.init;
          w.request.options.rank *= ranks;
          w.request.options.alpha *= alphas;
          for (auto& [module, rank] : w.request.options.rank_pattern) rank *= ranks;
          for (auto& [module, alpha] : w.request.options.alpha_pattern) alpha *= alphas;
          return;
        }
        w.request.options = p.options;
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
        w.request.targets = names;
      });
  return w;
}

/// A folder to put into the place of `dir`; nothing where none can be made next to it.
std::optional<StagedFolder> staged_beside(const std::filesystem::path& dir) try {
  return std::optional<StagedFolder>(std::in_place, std::filesystem::canonical(dir));
} catch (const FileError&) {
  return std::nullopt;
}

/// Puts a folder into its place; false where the file system cannot, as at a mount point.
bool commits(StagedFolder& folder) try {
  folder.commit();
  return true;
} catch (const FileError&) {
  return false;
}

}  // namespace

void save_adapter(CausalLM& model, const std::filesystem::path& dir, StagedFiles& files,
                  const std::string& base_model) {
  AdapterConfig config;
  // A path may hold any bytes, JSON may not; the field is a note to people.
  config.base_model_name_or_path = detail::to_utf8(base_model);
  Written adapter = written_adapter(model);
  if (adapter.modules == 0) throw ValueError("save_adapter: the model has no adapter");
  config.options = adapter.request.options;
  config.target_modules = adapter.request.targets;
  std::vector<Parameter>& factors = adapter.factors;
  const std::vector<Parameter> parameters = model.parameters();
  for (const Parameter& p : parameters)
    if (p.name == kScore) factors.push_back(p);
  for (const detail::WholeParameter& whole :
       expected_whole(model, adapter.request.options, adapter.request.targets)) {
    const auto own = std::ranges::find(parameters, whole.name, &Parameter::name);
    for (const std::string& name : whole.stored) factors.push_back({.name = name, .tensor = own->tensor});
  }
  config.has_score_head = model.score_classes() > 0;
  if (config.has_score_head) config.task_type = "SEQ_CLS";
  detail::create_folder(dir);
  detail::write_parameters(files, dir / kWeightsFile, factors, kPrefix);
  // Last: a folder without it is no adapter, so that a kill in between leaves a new folder that is refused.
  files.add_text(dir / kConfigFile, config.to_json());
}

void save_adapter(CausalLM& model, const std::filesystem::path& dir, const std::string& base_model) {
  std::error_code error;
  const bool replaces = std::filesystem::is_regular_file(dir / kConfigFile, error);
  if (replaces) {
    // Both files at once: new weights with the old configuration would load, with a wrong scale.
    std::optional<StagedFolder> folder = staged_beside(dir);
    if (folder) {
      StagedFiles files;
      save_adapter(model, folder->path(), files, base_model);
      files.commit();
      if (commits(*folder)) return;
    }
  }
  StagedFiles files;
  save_adapter(model, dir, files, base_model);
  // Rather no adapter for a moment than one of two.
  if (replaces) std::filesystem::remove(dir / kConfigFile, error);
  files.commit();
}

namespace {

/// Throws FileError unless the factors are those that the model's modules have.
AdapterFactors checked(CausalLM& model, AdapterFactors adapter, const std::filesystem::path& path) {
  try {
    resolve_lora_targets(model, adapter.targets);
  } catch (const ValueError& e) {
    throw FileError(fmt::format("{}: {}", path.string(), e.what()));
  }
  detail::TensorProblems problems;
  const std::size_t prefix = std::string_view(kPrefix).size();
  for (const auto& [name, shape] : expected_factors(model, adapter.options, adapter.targets)) {
    const auto found = adapter.factors.find(name.substr(prefix));
    if (found == adapter.factors.end())
      problems.missing(name.substr(prefix), shape);
    else if (static_cast<std::int64_t>(found->second.size()) != shape.numel())
      problems.check(found->first, shape, Shape{static_cast<std::int64_t>(found->second.size())}, true,
                     "float32");
  }
  problems.throw_if_any(path.string() + ": the adapter does not fit the model");
  return adapter;
}

}  // namespace

AdapterFactors read_adapter(CausalLM& model, const std::filesystem::path& dir) {
  if (auto foreign = detail::read_foreign_adapter(model.config(), dir))
    return checked(model, *std::move(foreign), dir);
  const AdapterConfig config = AdapterConfig::from_file(dir / kConfigFile);
  const SafetensorsFile file = SafetensorsFile::open(dir / kWeightsFile);
  AdapterFactors adapter;
  adapter.options = config.options;
  adapter.base_model = config.base_model_name_or_path;
  try {
    resolve_lora_targets(model, config.target_modules);
    adapter.targets = config.target_modules;
  } catch (const ValueError& e) {
    throw FileError(fmt::format("{}: {}", (dir / kConfigFile).string(), e.what()));
  }

  detail::TensorProblems problems;
  std::unordered_map<std::string, Shape> expected;
  for (const auto& [name, shape] : expected_factors(model, adapter.options, adapter.targets)) {
    expected.emplace(name, shape);
    if (!file.contains(name))
      problems.missing(name, shape);
    else
      problems.check(name, shape, file.info(name));
  }
  const std::string score = std::string(kPrefix) + kScore;
  if (config.has_score_head) {
    const std::int64_t classes =
        file.contains(score) && file.info(score).shape.rank() == 2 ? file.info(score).shape[0] : 1;
    expected.emplace(score, Shape{classes, model.config().hidden_size});
    if (!file.contains(score))
      problems.missing(score, expected.at(score));
    else
      problems.check(score, expected.at(score), file.info(score));
  }
  std::vector<std::pair<std::string, std::string>> whole;  // the model's names, and the file's
  for (const detail::WholeParameter& parameter : expected_whole(model, adapter.options, adapter.targets)) {
    for (const std::string& stored : parameter.stored) {
      std::string name = kPrefix + stored;
      if (!parameter.older.empty() && !file.contains(name)) name = kPrefix + parameter.older;
      expected.emplace(name, parameter.shape);
      if (file.contains(name)) {
        problems.check(name, parameter.shape, file.info(name));
        whole.emplace_back(parameter.name, name);
      } else if (!parameter.is_optional) {
        problems.missing(name, parameter.shape);
      }
    }
  }
  for (const std::string& name : file.names())
    if (!expected.contains(name)) problems.unexpected(name);
  problems.throw_if_any((dir / kWeightsFile).string() + ": the adapter does not fit the model");
  const std::size_t prefix = std::string_view(kPrefix).size();
  for (const std::string& name : file.names()) adapter.factors[name.substr(prefix)] = file.read_f32(name);
  for (const auto& [own, name] : whole) {
    const std::vector<float> values = file.read_f32(name);
    const auto [at, is_first] = adapter.factors.emplace(own, values);
    if (!is_first && at->second != values)
      throw FileError(fmt::format("{}: {} is another matrix than {}, and the model has one for both",
                                  (dir / kWeightsFile).string(), name, own));
    if (name.substr(prefix) != own) adapter.factors.erase(name.substr(prefix));
  }
  return adapter;
}

std::size_t load_adapter(CausalLM& model, const std::filesystem::path& dir) {
  const AdapterFactors adapter = read_adapter(model, dir);
  const std::size_t modules = apply_lora(model, adapter.options, adapter.targets, 0);
  if (const auto score = adapter.factors.find(kScore); score != adapter.factors.end())
    model.add_score_head(static_cast<std::int64_t>(score->second.size()) / model.config().hidden_size, 0);
  for (const Parameter& p : model.parameters())
    if (p.trainable && adapter.factors.contains(p.name))
      *p.tensor = LazyTensor::from_vector(adapter.factors.at(p.name), p.tensor->shape(), model.device());
  return modules;
}

}  // namespace caldera
