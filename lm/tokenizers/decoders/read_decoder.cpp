#include "lm/tokenizers/decoders/read_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/base/unicode/utf8.h"
#include "lm/tokenizers/decoders/decoder_sequence.h"
#include "lm/tokenizers/decoders/sentencepiece_decoders.h"
#include "lm/tokenizers/decoders/word_decoders.h"

namespace caldera::detail {
namespace {

/// Reads a field that holds one character.
std::string one_character(const JsonFields& fields, const char* field, const char* otherwise) {
  auto text = otherwise == nullptr ? fields.require_string(field) : fields.string(field).value_or(otherwise);
  if (text.empty() || utf8_character(text) != text.size()) fields.fail(field, "must be one character");
  return text;
}

std::unique_ptr<Decoder> read_metaspace(const JsonFields& fields) {
  const auto scheme = fields.string("prepend_scheme");
  const bool drop_first = scheme ? *scheme != "never" : fields.boolean("add_prefix_space").value_or(true);
  return make_metaspace_decoder(one_character(fields, "replacement", "\xE2\x96\x81"), drop_first);
}

}  // namespace

std::unique_ptr<Decoder> read_decoder(const nlohmann::json& config, const std::string& where) {
  if (config.is_null()) return nullptr;
  const JsonFields fields(config, where);
  const auto type = fields.require_string("type");
  if (type == "Replace") return make_replace_decoder(read_pattern(fields), fields.require_string("content"));
  if (type == "ByteFallback") return make_byte_fallback_decoder();
  if (type == "Fuse") return make_fuse_decoder();
  if (type == "Strip") {
    return make_strip_decoder(one_character(fields, "content", nullptr),
                              std::max<std::int64_t>(0, fields.require_integer("start")),
                              std::max<std::int64_t>(0, fields.require_integer("stop")));
  }
  if (type == "ByteLevel") return make_byte_level_decoder();
  if (type == "Metaspace") return read_metaspace(fields);
  if (type == "WordPiece") {
    return make_wordpiece_decoder(fields.string("prefix").value_or("##"),
                                  fields.boolean("cleanup").value_or(true));
  }
  if (type == "BPEDecoder") return make_bpe_decoder(fields.string("suffix").value_or("</w>"));
  if (type == "CTC") {
    return make_ctc_decoder(fields.string("pad_token").value_or("<pad>"),
                            fields.string("word_delimiter_token").value_or("|"),
                            fields.boolean("cleanup").value_or(true));
  }
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Decoder>> steps;
    for (const auto& step : fields.require_array("decoders")) {
      if (auto made = read_decoder(step, where)) steps.push_back(std::move(made));
    }
    return make_sequence(std::move(steps));
  }
  throw FileError(fmt::format(
      "{}: decoder '{}' is not supported (supported: Sequence, ByteLevel, Metaspace, WordPiece, BPEDecoder, "
      "CTC, ByteFallback, Fuse, Strip, Replace)",
      where, printable(type)));
}

}  // namespace caldera::detail
