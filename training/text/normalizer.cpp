#include "training/text/normalizer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "engine/tensor/error.h"
#include "training/io/json_file.h"

namespace caldera::detail {
namespace {

class PrependNormalizer final : public Normalizer {
 public:
  explicit PrependNormalizer(std::string prefix) : prefix_(std::move(prefix)) {}
  std::string normalize(std::string text) const override {
    return text.empty() ? text : prefix_ + text;  // nothing stays nothing, as in the reference
  }

 private:
  std::string prefix_;
};

class ReplaceNormalizer final : public Normalizer {
 public:
  ReplaceNormalizer(std::string pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  std::string normalize(std::string text) const override { return replace_all(text, pattern_, content_); }

 private:
  std::string pattern_;
  std::string content_;
};

class SequenceNormalizer final : public Normalizer {
 public:
  explicit SequenceNormalizer(std::vector<std::unique_ptr<Normalizer>> steps) : steps_(std::move(steps)) {}
  std::string normalize(std::string text) const override {
    for (const auto& step : steps_) text = step->normalize(std::move(text));
    return text;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

}  // namespace

std::string replace_all(const std::string& text, const std::string& pattern, const std::string& content) {
  std::string out;
  std::size_t from = 0;
  for (std::size_t at; (at = text.find(pattern, from)) != std::string::npos; from = at + pattern.size()) {
    out.append(text, from, at - from);
    out += content;
  }
  return out.append(text, from);
}

std::string string_pattern(const nlohmann::json& config, const std::string& where) {
  const auto* pattern = JsonFields(config, where).find("pattern");
  if (pattern == nullptr) throw FileError(fmt::format("{}: Replace has no pattern", where));
  const auto text = JsonFields(*pattern, where).string("String");
  if (!text || text->empty()) {
    throw FileError(
        fmt::format("{}: Replace supports only a pattern {{\"String\": ...}} that is not empty", where));
  }
  return *text;
}

std::unique_ptr<Normalizer> make_normalizer(const nlohmann::json& config, const std::string& where) {
  if (config.is_null()) return nullptr;
  const JsonFields fields(config, where);
  const auto type = fields.require_string("type");
  if (type == "Prepend") return std::make_unique<PrependNormalizer>(fields.require_string("prepend"));
  if (type == "Replace") {
    return std::make_unique<ReplaceNormalizer>(string_pattern(config, where),
                                               fields.require_string("content"));
  }
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Normalizer>> steps;
    for (const auto& step : fields.require_array("normalizers")) {
      if (auto made = make_normalizer(step, where)) steps.push_back(std::move(made));
    }
    return std::make_unique<SequenceNormalizer>(std::move(steps));
  }
  throw FileError(fmt::format("{}: normalizer '{}' is not supported (supported: Sequence, Prepend, Replace)",
                              where, printable(type)));
}

}  // namespace caldera::detail
