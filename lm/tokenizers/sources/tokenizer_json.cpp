#include "lm/tokenizers/sources/tokenizer_json.h"

#include <nlohmann/json.hpp>

#include "lm/base/json_file.h"
#include "lm/tokenizers/pipeline/pipeline.h"
#include "lm/tokenizers/pipeline/read_tokenizer.h"

namespace caldera {
namespace {

detail::Pipeline make_pipeline(std::string_view json, const std::string& where,
                               const TokenizerJson::Options& options) {
  auto parts = detail::read_tokenizer(detail::parse_json(json, where), where);
  parts.bos_id = options.bos_id;
  parts.eos_id = options.eos_id;
  parts.model_vocab_size = options.model_vocab_size;
  return {std::move(parts), where};
}

}  // namespace

struct TokenizerJson::Impl {
  detail::Pipeline pipeline;
};

TokenizerJson::TokenizerJson(std::string_view json, const std::string& where)
    : TokenizerJson(json, where, Options{}) {}

TokenizerJson::TokenizerJson(std::string_view json, const std::string& where, Options options)
    : impl_(new Impl{make_pipeline(json, where, options)}) {}

TokenizerJson::~TokenizerJson() = default;

std::vector<std::int32_t> TokenizerJson::encode(std::string_view text, bool add_special) const {
  return impl_->pipeline.encode(text, add_special);
}

std::string TokenizerJson::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  return impl_->pipeline.decode(ids, skip_special);
}

std::int64_t TokenizerJson::vocab_size() const { return impl_->pipeline.vocab_size(); }
std::optional<std::int32_t> TokenizerJson::bos_id() const { return impl_->pipeline.bos_id(); }
std::optional<std::int32_t> TokenizerJson::eos_id() const { return impl_->pipeline.eos_id(); }

std::optional<std::int32_t> TokenizerJson::token_to_id(std::string_view token) const {
  return impl_->pipeline.token_to_id(token);
}
bool TokenizerJson::is_special(std::int32_t id) const { return impl_->pipeline.is_special(id); }
std::string TokenizerJson::token_bytes(std::int32_t id) const { return impl_->pipeline.token_bytes(id); }

void TokenizerJson::set_specials(std::optional<std::int32_t> bos_id, std::optional<std::int32_t> eos_id) {
  impl_->pipeline.set_specials(bos_id, eos_id);
}

}  // namespace caldera
