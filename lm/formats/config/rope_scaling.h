// RopeScaling: how a model stretches the frequencies of its rotary positions, as config.json says it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caldera {

/// The types of Hugging Face's modeling_rope_utils.py; nn/rope_frequencies.h has their formulas.
enum class RopeType : std::uint8_t { plain, linear, dynamic, llama3, yarn, longrope };

/// The fields of `rope_scaling` or `rope_parameters`, under their names there. A type reads its own ones.
struct RopeScaling {
  RopeType type = RopeType::plain;    ///< "default" in a file
  double partial_rotary_factor = 1;   ///< the part of a head's width that is rotated
  std::optional<double> factor = {};  ///< linear, dynamic, llama3, yarn, longrope
  /// llama3, yarn, longrope: else max_position_embeddings.
  std::optional<std::int64_t> original_max_position_embeddings = {};
  double low_freq_factor = 1;                   ///< llama3
  double high_freq_factor = 4;                  ///< llama3
  double beta_fast = 32;                        ///< yarn
  double beta_slow = 1;                         ///< yarn
  std::optional<double> mscale = {};            ///< yarn
  std::optional<double> mscale_all_dim = {};    ///< yarn
  std::optional<double> attention_factor = {};  ///< yarn, longrope: what cosines and sines are multiplied by
  bool truncate = true;                         ///< yarn: whether the ends of its ramp are whole numbers
  std::vector<double> short_factor = {};        ///< longrope: of texts up to the original length
  std::vector<double> long_factor = {};         ///< longrope: of longer ones
  double llama_4_scaling_beta = 0;  ///< queries are multiplied by 1 + beta ln(1 + floor(position / original))

  /// The length of the texts that the frequencies were made for; `max_positions` is the model's
  /// max_position_embeddings.
  std::int64_t original_positions(std::int64_t max_positions) const;
  /// The factor, or how much longer the model's texts are than the original ones.
  double stretch(std::int64_t max_positions) const;
  /// The positions that the model may be used at: stretch * original positions where that is more than
  /// max_position_embeddings.
  std::int64_t usable_positions(std::int64_t max_positions) const;

  bool operator==(const RopeScaling&) const = default;
};

/// One set of rotary frequencies of a model.
struct RopeParameters {
  double theta = 10000;
  RopeScaling scaling = {};

  bool operator==(const RopeParameters&) const = default;
};

/// The name that a file has for the type.
std::string_view name(RopeType type);

}  // namespace caldera
