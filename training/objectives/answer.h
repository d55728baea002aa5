// Answer: what a model wrote to a prompt, to be judged by a reward.
#pragma once

#include <string>

namespace caldera {

/// An answer that is to be judged.
struct Answer {
  std::string data;  ///< the row that the prompt came from, a JSON object
  std::string text;  ///< what the model wrote
};

}  // namespace caldera
