#include "cli/arguments/settings_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "cli/arguments/usage_error.h"
#include "lm/base/atomic_file.h"

namespace caldera::cli {

std::string Setting::text() const { return fmt::format("{}", fmt::join(values, ",")); }

std::vector<Setting> read_settings(const std::filesystem::path& path) {
  const std::string text = read_text_file(path);
  const auto fail = [&](const YAML::Mark& mark, const std::string& problem) {
    throw UsageError(fmt::format("{}:{}: {}", path.string(), mark.line + 1, problem));
  };
  std::vector<Setting> settings;
  try {
    const YAML::Node root = YAML::Load(text);
    if (root.IsNull()) return settings;
    if (!root.IsMap()) fail(root.Mark(), "want lines of 'flag: value'");
    for (const auto& entry : root) {
      const YAML::Node& value = entry.second;
      if (!entry.first.IsScalar()) fail(entry.first.Mark(), "want the name of a flag before the colon");
      Setting setting{.name = entry.first.Scalar(), .values = {}, .line = entry.first.Mark().line + 1};
      std::ranges::replace(setting.name, '_', '-');
      if (std::ranges::find(settings, setting.name, &Setting::name) != settings.end())
        fail(entry.first.Mark(), fmt::format("'{}' is there twice", setting.name));
      if (value.IsScalar()) {
        setting.values.push_back(value.Scalar());
      } else if (value.IsSequence()) {
        for (const YAML::Node& item : value) {
          if (!item.IsScalar())
            fail(item.Mark(), fmt::format("'{}' wants a list of plain values", setting.name));
          setting.values.push_back(item.Scalar());
        }
      } else if (!value.IsNull()) {
        fail(value.Mark(), fmt::format("'{}' wants a value or a list: there are no sections", setting.name));
      }
      settings.push_back(std::move(setting));
    }
  } catch (const YAML::Exception& error) {
    fail(error.mark, error.msg);
  }
  return settings;
}

std::string write_settings(const std::vector<Setting>& settings, const std::string& comment) {
  YAML::Emitter out;
  out << YAML::Comment(comment) << YAML::Newline << YAML::BeginMap;
  for (const Setting& setting : settings) {
    out << YAML::Key << setting.name << YAML::Value;
    if (setting.values.size() == 1) {
      out << setting.values.front();
    } else {
      out << YAML::Flow << setting.values;
    }
  }
  out << YAML::EndMap << YAML::Newline;
  return out.c_str();
}

}  // namespace caldera::cli
