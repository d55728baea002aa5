#include "cli/arguments/adapter_flags.h"

#include <fmt/format.h>

#include <charconv>

#include "cli/arguments/domains.h"
#include "cli/arguments/model_flags.h"
#include "cli/arguments/usage_error.h"
#include "lm/models/causal_lm.h"

namespace caldera::cli {
namespace {

/// "q_proj=4": what is before the last equals sign, and the number.
std::pair<std::string, double> read_pattern(const std::string& text, const char* flag) {
  const std::size_t equals = text.rfind('=');
  double value = 0;
  const bool is_pair = equals != text.npos && equals > 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = is_pair ? std::from_chars(text.data() + equals + 1, end, value)
                                        : std::from_chars_result{nullptr, std::errc::invalid_argument};
  if (error != std::errc() || stopped != end)
    throw UsageError(fmt::format("{} {}: give MODULE=NUMBER, as in down_proj=4", flag, text));
  return {text.substr(0, equals), value};
}

}  // namespace

void AdapterFlags::declare(Arguments& args) {
  const std::size_t before = args.all().size();
  declare_lora(args, options, targets);
  args.option(
          "--adapter-type", type_,
          "lora; rslora, scaled by alpha / sqrt(rank); dora, which trains the lengths of the weights' rows "
          "as "
          "well; pissa, which begins as the weights' largest part; or full, which trains the model itself")
      .one_of({"lora", "rslora", "dora", "pissa", "full"})
      .type_name("TYPE")
      .show_default();
  init_option_ = args.option("--init", init_, "What A begins as: uniform (default), or normal(0, 1 / rank)")
                     .one_of({"default", "gaussian"})
                     .show_default();
  args.option("--rank-pattern", ranks_, "Ranks of single modules: down_proj=4,layers.0.*q_proj=16")
      .type_name("MODULE=N,...")
      .delimiter(',');
  args.option("--alpha-pattern", alphas_, "Alphas of single modules, likewise")
      .type_name("MODULE=A,...")
      .delimiter(',');
  const Option layers =
      args.option("--layers", options.layers_to_transform, "Adapt these layers alone, counted from 0")
          .type_name("N,...")
          .delimiter(',');
  args.option("--lora-layers", last_layers_, "Adapt the last N layers alone")
      .type_name("N")
      .check(integer_in(1, 1 << 20))
      .excludes(layers);
  args.option("--exclude-modules", options.exclude_modules, "Of --target-modules, leave out these")
      .type_name("NAMES")
      .delimiter(',');
  args.option("--modules-to-save", options.modules_to_save,
              "Train these modules themselves beside the adapter, and keep them in it: embed_tokens,lm_head")
      .type_name("NAMES")
      .delimiter(',');
  args.option("--bias", bias_, "Train biases of the model beside the adapter: none, all, or its modules'")
      .one_of({"none", "all", "lora_only"})
      .show_default();
  adapters_alone_ = args.all();
  adapters_alone_.erase(adapters_alone_.begin(),
                        adapters_alone_.begin() + static_cast<std::ptrdiff_t>(before));
  std::erase(adapters_alone_, args.get("--adapter-type"));
  args.option(
          "--freeze", freeze_,
          "With --adapter-type full: leave parameters as they are whose names end so, or match the regular "
          "expression (embed_tokens.weight, .*layers\\.[0-3]\\..*)")
      .type_name("NAMES")
      .delimiter(',');
}

void AdapterFlags::remove_unused(std::vector<Setting>& settings) const {
  if (!is_full()) return;
  for (const Option& option : adapters_alone_)
    std::erase_if(settings, [&](const Setting& setting) { return "--" + setting.name == option.name(); });
}

void AdapterFlags::resolve(CausalLM& model) {
  options.use_rslora = type_ == "rslora";
  options.use_dora = type_ == "dora";
  options.bias = bias_ == "all" ? LoRABias::all : bias_ == "lora_only" ? LoRABias::lora_only : LoRABias::none;
  options.init = type_ == "pissa"      ? LoRAInit::pissa
                 : init_ == "gaussian" ? LoRAInit::gaussian
                                       : LoRAInit::kaiming;
  if (type_ == "pissa" && init_option_.given())
    throw UsageError("--init: pissa begins as the weights' largest part; leave the flag out");
  for (const Option& option : adapters_alone_)
    if (is_full() && option.given())
      throw UsageError(
          fmt::format("{}: is for adapters; --adapter-type full trains the model itself", option.name()));
  if (is_full()) return;
  if (!freeze_.empty())
    throw UsageError("--freeze: an adapter trains nothing of the model; give --adapter-type full");
  for (const std::string& text : ranks_) {
    const auto [module, value] = read_pattern(text, "--rank-pattern");
    if (value < 1 || value > 1 << 20 || value != static_cast<int>(value))
      throw UsageError(fmt::format("--rank-pattern {}: a rank is a positive integer", text));
    options.rank_pattern[module] = static_cast<int>(value);
  }
  for (const std::string& text : alphas_) {
    const auto [module, value] = read_pattern(text, "--alpha-pattern");
    options.alpha_pattern[module] = value;
  }
  const std::int64_t count = model.config().num_hidden_layers;
  if (last_layers_) {
    for (std::int64_t i = std::max<std::int64_t>(0, count - *last_layers_); i < count; ++i)
      options.layers_to_transform.push_back(i);
  }
  for (const std::int64_t layer : options.layers_to_transform)
    if (layer < 0 || layer >= count)
      throw UsageError(fmt::format("--layers {}: the model has layers 0 to {}", layer, count - 1));
  targets = resolve_targets(model, targets);
  try {
    options.validate();
    const auto modules = lora_modules(model, options, targets);
    if (modules.empty()) throw ValueError("no module is left to adapt");
    lora_saved_parameters(model, options, targets);
  } catch (const ValueError& error) {
    throw UsageError(error.what());
  }
}

std::string AdapterFlags::make_trainable(CausalLM& model, std::uint64_t seed,
                                         const std::string& model_path) const {
  if (!is_full())
    return fmt::format("rank {} on {} modules", options.rank, apply_lora(model, options, targets, seed));
  if (model.has_quantized_weights())
    throw UsageError(fmt::format(
        "--adapter-type full: {} has quantised weights, which are not trained; train an adapter on "
        "them, or convert the model to f32 first (caldera convert --type f32)",
        model_path));
  freeze(model);
  return "all of the model";
}

void AdapterFlags::freeze(CausalLM& model) const {
  class Freezer final : public ParameterVisitor {
   public:
    explicit Freezer(const std::vector<std::string>& names) : names_(names), found_(names.size()) {}
    void parameter(const std::string& name, Weight& weight) override {
      weight.trainable = true;
      for (std::size_t i = 0; i < names_.size(); ++i) {
        if (!is_lora_target(names_[i], name)) continue;
        weight.trainable = false;
        found_[i] = true;
      }
    }
    void check() const {
      for (std::size_t i = 0; i < names_.size(); ++i)
        if (!found_[i])
          throw UsageError(fmt::format("--freeze {}: the model has no such parameter", names_[i]));
    }

   private:
    const std::vector<std::string>& names_;
    std::vector<bool> found_;
  };
  Freezer freezer(freeze_);
  try {
    model.visit({}, freezer);
  } catch (const ValueError& error) {
    throw UsageError(fmt::format("--freeze: {}", error.what()));
  }
  freezer.check();
  if (model.trainable_parameter_count() == 0) throw UsageError("--freeze: nothing is left to train");
}

}  // namespace caldera::cli
