// data_fingerprint: tells whether two data sets hold the same tokens.
#pragma once

#include <string>

#include "training/data/dataset.h"

namespace caldera {

/// Returns 16 hexadecimal digits that depend on the tokens of all examples, their order, and how many
/// predictions count: the same on every machine (FNV-1a, 64 bits). Notices other data, not an attack.
std::string data_fingerprint(const TokenDataset& data);

}  // namespace caldera
