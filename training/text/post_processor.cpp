#include "training/text/post_processor.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/tensor/error.h"
#include "training/io/json_file.h"

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

}  // namespace

PostProcessor make_post_processor(const nlohmann::json& config, const std::string& where) {
  PostProcessor processor;
  if (config.is_null()) return processor;
  const JsonFields fields(config, where);
  const auto type = fields.require_string("type");
  if (type != "TemplateProcessing") {
    throw FileError(
        fmt::format("{}: post_processor '{}' is not supported (supported: null, TemplateProcessing)", where,
                    printable(type)));
  }
  int sequences = 0;
  for (const auto& piece : fields.require_array("single")) {
    const JsonFields piece_fields(piece, where);
    if (piece_fields.has("Sequence")) {
      ++sequences;
    } else if (const auto* special = piece_fields.find("SpecialToken")) {
      const auto ids = ids_of(JsonFields(*special, where).require_string("id"), fields, where);
      auto& side = sequences == 0 ? processor.prefix : processor.suffix;
      side.insert(side.end(), ids.begin(), ids.end());
    } else {
      fields.fail("single", "holds a piece that is neither a Sequence nor a SpecialToken");
    }
  }
  if (sequences != 1) fields.fail("single", "must hold exactly one Sequence");
  return processor;
}

}  // namespace caldera::detail
