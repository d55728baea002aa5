// Why a text ended.
#pragma once

#include <cstdint>

namespace caldera {

enum class FinishReason : std::uint8_t {
  stop,       // a stop token was drawn, or the receiver said so
  length,     // max_tokens were drawn, or the model has no more positions
  cancelled,  // cancel() was called (batches only)
  failed,     // the request could not go on; its event says why (batches only)
};

}  // namespace caldera
