#include "training/text/pre_tokenizer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/tensor/error.h"
#include "training/io/json_file.h"

namespace caldera::detail {

std::unique_ptr<PreTokenizer> make_pre_tokenizer(const nlohmann::json& config, const std::string& where) {
  if (config.is_null()) return nullptr;
  const auto type = JsonFields(config, where).require_string("type");
  throw FileError(
      fmt::format("{}: pre_tokenizer '{}' is not supported (supported: null)", where, printable(type)));
}

}  // namespace caldera::detail
