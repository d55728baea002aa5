#include "lm/base/json_integers.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace caldera::detail {
namespace {

using Json = nlohmann::ordered_json;

/// Builds what the parser tells it of.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(std::int64_t value) override { return put(value); }
  bool number_unsigned(std::uint64_t value) override { return put(value); }
  bool number_float(double value, const std::string& text) override {
    if (text.find_first_of(".eE") != text.npos) return put(value);
    return put(Json::binary(Json::binary_t::container_type(text.begin(), text.end())));
  }
  bool string(std::string& value) override { return put(std::move(value)); }
  bool binary(Json::binary_t& value) override { return put(Json::binary(value)); }
  bool start_object(std::size_t /*size*/) override { return open(Json::object()); }
  bool key(std::string& name) override {
    place_ = &(*open_.back())[name];
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*size*/) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    if (const auto* syntax = dynamic_cast<const Json::parse_error*>(&error)) throw *syntax;
    if (const auto* range = dynamic_cast<const Json::out_of_range*>(&error)) throw *range;
    throw error;
  }

  Json take() { return std::move(root_); }

 private:
  Json& slot(Json&& value) {
    if (open_.empty()) return root_ = std::move(value);
    if (open_.back()->is_object()) return *place_ = std::move(value);
    open_.back()->push_back(std::move(value));
    return open_.back()->back();
  }
  bool put(Json value) {
    slot(std::move(value));
    return true;
  }
  bool open(Json value) {
    open_.push_back(&slot(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Json*> open_;  // objects and lists that have not ended: what a list holds moves once they have
  Json* place_ = nullptr;    // of the key that was read last
};

}  // namespace

nlohmann::ordered_json parse_whole_integers(std::string_view text) {
  Builder builder;
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

std::optional<std::string> large_integer(const nlohmann::ordered_json& value) {
  if (value.is_binary()) {
    const auto& bytes = value.get_binary();
    return std::string(bytes.begin(), bytes.end());
  }
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return value.dump();
  return std::nullopt;
}

}  // namespace caldera::detail
