// LoRA (Hu et al. 2021): low-rank adapters next to frozen linear layers, in PEFT's conventions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lm/nn/layers/dropout.h"
#include "lm/nn/layers/linear.h"

namespace caldera {

class CausalLM;
class StagedFiles;

struct LoRAOptions {
  int rank = 8;
  double alpha = 16;
  double dropout = 0;

  double scaling() const { return alpha / rank; }
  /// Throws ValueError unless rank > 0, alpha > 0 and 0 <= dropout < 1.
  void validate() const;
};

/// y = base(x) + alpha / rank * ((dropout(x) A^T) B^T). A is (rank, in), B is (out, rank), as PEFT stores
/// them. Parameters: those of the base under their own names, then "lora_A.weight" and "lora_B.weight".
class LoRALinear final : public Projection {
 public:
  /// A uniform on (-1/sqrt(in), 1/sqrt(in)): kaiming_uniform with a = sqrt(5), PEFT's default; B zero: the
  /// layer begins as its base. `name` is for messages. Throws ValueError when the rank is above min(in, out).
  LoRALinear(std::unique_ptr<Projection> base, const LoRAOptions& options, std::uint64_t seed,
             const std::string& name = "LoRALinear");
  /// With given factors. Throws ShapeError unless A is (rank, in) and B is (out, rank).
  LoRALinear(std::unique_ptr<Projection> base, const LoRAOptions& options, LazyTensor a, LazyTensor b);

  /// x (..., in) to (..., out), for any number of leading axes, none included.
  LazyTensor forward(const LazyTensor& x) override;
  std::int64_t in_features() const override { return base_->in_features(); }
  std::int64_t out_features() const override { return base_->out_features(); }
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

  Projection& base() { return *base_; }
  const LoRAOptions& options() const { return options_; }
  LazyTensor& lora_a() { return a_.tensor; }
  LazyTensor& lora_b() { return b_.tensor; }

  /// Says whether forward adds the adapter's part; AdapterSwitchedOff turns it off for a scope.
  void set_enabled(bool enabled) { enabled_ = enabled; }
  bool is_enabled() const { return enabled_; }

 private:
  std::unique_ptr<Projection> base_;
  LoRAOptions options_;
  Weight a_;
  Weight b_;
  Dropout dropout_;
  bool enabled_ = true;
};

/// The names of the modules of `model` that LoRA can be attached to, as visit_projections reports them, each
/// once: "q_proj", "k_proj", ...
std::vector<std::string> lora_target_modules(CausalLM& model);

/// `targets` with "all-linear" replaced by all of these (the head is not among them), in the model's order,
/// each once. Throws ValueError listing the model's names for an unknown one or an empty list.
std::vector<std::string> resolve_lora_targets(CausalLM& model, const std::vector<std::string>& targets);

/// Freezes the model, then wraps the target projections of every layer. The new factors are trainable.
/// Returns the number of modules wrapped. Throws ValueError (and changes nothing) for bad options, an unknown
/// target, a rank above min(in, out) of a module, or a model that has an adapter already.
std::size_t apply_lora(CausalLM& model, const LoRAOptions& options, const std::vector<std::string>& targets,
                       std::uint64_t seed);

/// Writes adapter_config.json and adapter_model.safetensors as PEFT reads them. An adapter that is there is
/// replaced in one step, with what else is in its folder kept: a kill at any moment leaves the old or the new
/// one. `base_model` is recorded as base_model_name_or_path. Creates the folder. Throws ValueError when the
/// model has no adapter, FileError when writing fails.
void save_adapter(CausalLM& model, const std::filesystem::path& dir, const std::string& base_model = {});
/// Writes them together with other files: the caller commits `files`.
void save_adapter(CausalLM& model, const std::filesystem::path& dir, StagedFiles& files,
                  const std::string& base_model = {});

/// An adapter as its files have it.
struct AdapterFactors {
  LoRAOptions options;
  std::vector<std::string> targets;                   // the model's names
  std::map<std::string, std::vector<float>> factors;  // "<path of a projection>.lora_A.weight", and lora_B
};

/// Reads the adapter in `dir`, and checks that it fits the model. Throws FileError naming the tensors that
/// are missing, unexpected or of the wrong shape.
AdapterFactors read_adapter(CausalLM& model, const std::filesystem::path& dir);

/// Applies the adapter in `dir` to a model without one, with the rank, alpha, dropout and targets that the
/// adapter itself names, and returns the number of modules. Throws FileError naming the tensors that are
/// missing, unexpected or of the wrong shape; the model is then unchanged.
std::size_t load_adapter(CausalLM& model, const std::filesystem::path& dir);

}  // namespace caldera
