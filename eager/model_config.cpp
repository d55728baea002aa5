#include "eager/model_config.h"

#include <string_view>
#include <system_error>

#include "eager/errors.h"
#include "lm/models/registry.h"

namespace caldera::v1 {

ModelConfig ModelConfig::from_json(const std::string& text) try {
  // The family knows its defaults. Nothing of the model is computed.
  return {text, make_causal_lm_from_json(text, caldera::Device::cpu())->config()};
} catch (const FileError& error) {
  throw ModelError::invalid_config(error.what());
}

ModelConfig ModelConfig::from_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) throw ModelError::file_not_found(path.string());
  try {
    return from_json(model_config_text(path));
  } catch (const FileError& error) {
    throw ModelError::invalid_config(error.what());
  }
}

void ModelConfig::validate() const try {
  const std::string_view activation = config_.hidden_act;
  config_.validate({&activation, 1});
} catch (const ValueError& error) {
  throw ModelError::invalid_config(error.what());
}

}  // namespace caldera::v1
