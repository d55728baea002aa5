// The frequencies of rotary positions, stretched as RopeScaling says. Formulas are those of Hugging Face's
// modeling_rope_utils.py; yarn is Peng et al. 2023, longrope Ding et al. 2024.
#pragma once

#include <cstdint>
#include <vector>

#include "lm/formats/config/rope_scaling.h"

namespace caldera {

struct RopeFrequencies {
  std::vector<double> inverse;  ///< angle of pair i at position p: p * inverse[i]
  double attention_scale = 1;   ///< cosines and sines are multiplied by it
};

/// Whether the frequencies depend on the length of the sequence: types dynamic and longrope.
bool depends_on_length(const RopeScaling& scaling);

/// Sequences with the same key have the same frequencies: 0 up to the original length, beyond it 1 (longrope)
/// or the length itself (dynamic). `max_positions` is the model's max_position_embeddings.
std::int64_t frequency_key(const RopeScaling& scaling, std::int64_t max_positions, std::int64_t length);

/// The frequencies of head_dim * partial_rotary_factor rotated features, for a sequence of `length`
/// positions. Throws ValueError where the rotated width is not positive and even, or short_factor and
/// long_factor do not have one entry for each pair.
RopeFrequencies rope_frequencies(const RopeParameters& rope, std::int64_t head_dim,
                                 std::int64_t max_positions, std::int64_t length);

}  // namespace caldera
