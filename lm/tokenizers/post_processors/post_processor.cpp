#include "lm/tokenizers/post_processors/post_processor.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/json_file.h"

namespace caldera::detail {
namespace {

/// Ids of the special token that a template names, from the processor's own table.
std::vector<std::int32_t> ids_of(const std::string& token, const JsonFields& fields,
                                 const std::string& where) {
  const auto* table = fields.find("special_tokens");
  if (table == nullptr || !table->is_object() || !table->contains(token)) {
    throw FileError(fmt::format("{}: special token '{}' is not in special_tokens", where, printable(token)));
  }
  std::vector<std::int32_t> ids;
  for (const auto& id : JsonFields(table->at(token), where).require_array("ids")) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > INT32_MAX) {
      throw FileError(fmt::format("{}: special token '{}' has an id that is none", where, printable(token)));
    }
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

PostProcessor read_template(const JsonFields& fields) {
  PostProcessor processor;
  int sequences = 0;
  for (const auto& piece : fields.require_array("single")) {
    const JsonFields piece_fields(piece, fields.where());
    if (piece_fields.has("Sequence")) {
      ++sequences;
    } else if (const auto* special = piece_fields.find("SpecialToken")) {
      const auto ids =
          ids_of(JsonFields(*special, fields.where()).require_string("id"), fields, fields.where());
      auto& side = sequences == 0 ? processor.prefix : processor.suffix;
      side.insert(side.end(), ids.begin(), ids.end());
    } else {
      fields.fail("single", "holds a piece that is neither a Sequence nor a SpecialToken");
    }
  }
  if (sequences != 1) fields.fail("single", "must hold exactly one Sequence");
  return processor;
}

/// The id of `field`, which holds a token's text and its id.
std::int32_t token_id(const JsonFields& fields, const char* field) {
  const auto& pair = fields.require_array(field);
  const bool valid = pair.size() == 2 && pair[0].is_string() && pair[1].is_number_unsigned() &&
                     pair[1].get<std::uint64_t>() <= INT32_MAX;
  if (!valid) fields.fail(field, "must be a token and its id");
  return pair[1].get<std::int32_t>();
}

}  // namespace

PostProcessor around(std::optional<std::int32_t> before, std::optional<std::int32_t> after) {
  PostProcessor processor;
  if (before) processor.prefix.push_back(*before);
  if (after) processor.suffix.push_back(*after);
  return processor;
}

PostProcessor read_post_processor(const nlohmann::json& config, const std::string& where) {
  if (config.is_null()) return {};
  const JsonFields fields(config, where);
  const auto type = fields.require_string("type");
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") return read_template(fields);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return around(token_id(fields, "cls"), token_id(fields, "sep"));
  }
  if (type == "Sequence") {
    PostProcessor all;
    for (const auto& step : fields.require_array("processors")) {
      const PostProcessor one = read_post_processor(step, where);
      all.prefix.insert(all.prefix.begin(), one.prefix.begin(), one.prefix.end());
      all.suffix.insert(all.suffix.end(), one.suffix.begin(), one.suffix.end());
    }
    return all;
  }
  throw FileError(
      fmt::format("{}: post_processor '{}' is not supported (supported: Sequence, TemplateProcessing, "
                  "BertProcessing, RobertaProcessing, ByteLevel)",
                  where, printable(type)));
}

}  // namespace caldera::detail
