// Base64 (RFC 4648). Private to lm/.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caldera::detail {

/// The bytes that `text` stands for; nothing where it is not base64 with its padding.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace caldera::detail
