// StreamLosses: what a stream has left out.
#pragma once

#include <cstdint>
#include <string>

#include "training/data/dataset.h"

namespace caldera {

/// Counts the rows that a stream has left out so far.
struct StreamLosses {
  std::int64_t empty_rows = 0;     ///< nothing to learn in them
  std::int64_t bad_rows = 0;       ///< they could not be read (DataFileOptions::skip_bad_rows)
  std::string first_bad_row = {};  ///< what the error of the first of those said
  DatasetLosses sequences;
};

}  // namespace caldera
