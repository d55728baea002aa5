// Sequences of decoders. Private to lm/tokenizers/.
#pragma once

#include <memory>
#include <vector>

#include "lm/tokenizers/decoders/decoder.h"

namespace caldera::detail {

std::unique_ptr<Decoder> make_sequence(std::vector<std::unique_ptr<Decoder>> steps);

}  // namespace caldera::detail
