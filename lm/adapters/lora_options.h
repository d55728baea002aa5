// LoRAOptions: what kind of adapter, how large, and which modules it leaves out; in PEFT's words
// (LoraConfig).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace caldera {

/// The target that means all projections.
inline constexpr const char* kAllLinear = "all-linear";

/// Says what an adapter begins with.
enum class LoRAInit : std::uint8_t {
  kaiming,   ///< A uniform on (-1/sqrt(in), 1/sqrt(in)), B zero: PEFT's default
  gaussian,  ///< A normal(0, 1/rank), B zero
  pissa,     ///< the largest singular values of the weight, of which the base gives up its part (Meng et al.
             ///< 2024)
};

/// Says which biases of the model are trained beside an adapter.
enum class LoRABias : std::uint8_t {
  none,
  all,
  lora_only,  ///< those of the adapted modules
};

struct LoRAOptions {
  int rank = 8;
  double alpha = 16;
  double dropout = 0;
  bool use_rslora = false;  ///< scales by alpha / sqrt(rank) (Kalajdzievski 2023)
  bool use_dora =
      false;  ///< trains the length of each row of the weight beside its direction (Liu et al. 2024)
  LoRAInit init = LoRAInit::kaiming;
  /// Ranks and alphas of single modules, by regular expressions that match the end of a module's path, at a
  /// dot: "layers.0.self_attn.q_proj", "down_proj". The first that matches counts.
  std::map<std::string, int> rank_pattern = {};
  std::map<std::string, double> alpha_pattern = {};
  std::vector<std::int64_t> layers_to_transform = {};  ///< numbers of layers, from 0; empty: all
  /// Names of the lists that these numbers count in ("layers"), where the first number of a path is another;
  /// modules outside of them are left out then.
  std::vector<std::string> layers_pattern = {};
  std::vector<std::string> exclude_modules = {};  ///< as targets: see is_lora_target()
  /// Modules that are trained themselves, and are a part of the adapter: "embed_tokens", "lm_head", "norm".
  /// They match as targets do.
  std::vector<std::string> modules_to_save = {};
  LoRABias bias = LoRABias::none;

  double scaling() const;
  /// The options of the module with this path: rank and alpha by the patterns, which are gone then.
  LoRAOptions for_module(const std::string& path) const;
  /// Throws ValueError unless ranks and alphas are positive, 0 <= dropout < 1, and patterns are regular
  /// expressions.
  void validate() const;

  bool operator==(const LoRAOptions&) const = default;
};

/// Whether a target is a regular expression for whole paths: it has a character that no name has.
bool is_lora_pattern(std::string_view target);
/// Whether `target` means the module with this path ("model.layers.0.self_attn.q_proj"): its end at a dot
/// ("q_proj", "self_attn.q_proj"), or a regular expression for all of it. Throws ValueError for an expression
/// that is none.
bool is_lora_target(const std::string& target, const std::string& path);
/// The number of the layer that a module is in: the first of its path, or the one behind a component that is
/// among `lists`; -1 where there is none.
std::int64_t layer_of_path(std::string_view path, const std::vector<std::string>& lists = {});

}  // namespace caldera
