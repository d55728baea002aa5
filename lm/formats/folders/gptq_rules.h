// Settings of single modules in a GPTQ folder. Private to lm/formats/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lm/base/json_file.h"
#include "lm/base/regex/regex.h"

namespace caldera::detail {

/// Says how wide the codes of a module are, and how many share a scale.
struct GptqSettings {
  std::int64_t bits = 4;
  std::int64_t group = 128;  ///< -1: all inputs

  bool operator==(const GptqSettings&) const = default;
};

/// Throws FileError for numbers that are not supported.
GptqSettings read_gptq_settings(const JsonFields& options, const char* bits_name, const char* group_name,
                                const GptqSettings& otherwise = {});

/// Holds GPTQModel's `dynamic`: expressions over the names of modules ("+:" before those that have settings
/// of their own, "-:" before those that are not quantised), matched from the name's beginning.
class GptqRules {
 public:
  /// Throws FileError for settings and expressions that are not supported.
  GptqRules(const JsonFields& options, const GptqSettings& usual);

  /// Throws FileError for a module that is said not to be quantised, or about which two rules differ: the
  /// file's order of them counts for GPTQModel, and is lost here.
  GptqSettings settings_of(const std::string& module) const;

 private:
  struct Rule {
    std::string name;
    std::unique_ptr<Regex> expression;
    bool quantized = true;
    GptqSettings settings;
  };
  GptqSettings usual_;
  std::vector<Rule> rules_;
};

}  // namespace caldera::detail
