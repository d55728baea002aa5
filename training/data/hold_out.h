// Takes a validation part from training data that have none.
#pragma once

#include <cstdint>
#include <optional>

#include "training/data/forms/example.h"

namespace caldera {

/// Moves the end of `train` into a validation part: a twentieth, or `least` sequences of `seq_len` if that is
/// more, but at most a quarter. Returns nothing where there is too little to share. A document is cut between
/// characters.
std::optional<ExampleSet> hold_out_end(ExampleSet& train, std::int64_t least, std::int64_t seq_len);

/// Moves a share of the examples, `fraction` of them but at least one, drawn by `seed`; of a document, its
/// end. Both parts keep the order of the file. Returns nothing where nothing would be left to train on.
/// `fraction` is above 0 and below 1.
std::optional<ExampleSet> hold_out_drawn(ExampleSet& train, double fraction, std::uint64_t seed);

}  // namespace caldera
