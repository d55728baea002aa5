#include <fmt/format.h>

#include <utility>

#include "lm/serve/protocol/options.h"

namespace caldera::serve {
namespace {

using PartKind = GrammarPart::Kind;

constexpr std::size_t kMostChoices = 4096;

/// Reads the fields that ask for a form, one after another, and refuses a second one.
class FormReader {
 public:
  void read_response_format(const Fields& fields) {
    const Json* format = fields.object("response_format");
    if (format == nullptr) return;
    const Fields inner(*format, "response_format.");
    const std::string type = inner.text("type").value_or("");
    if (type == "json_object") {
      set(fields, "response_format", {{{PartKind::json_object, {}}}});
    } else if (type == "json_schema") {
      const Json* wrapped = inner.object("json_schema");
      if (wrapped == nullptr) inner.fail("json_schema", "is missing");
      const auto schema = wrapped->find("schema");
      if (schema == wrapped->end() || (!schema->is_object() && !schema->is_boolean()))
        inner.fail("json_schema.schema", "must be a schema: an object, true or false");
      set(fields, "response_format", {{{PartKind::json_schema, dump(*schema)}}});
    } else if (type != "text") {
      inner.fail("type", "must be text, json_object or json_schema");
    }
  }

  void read_structured_outputs(const Fields& fields) {
    const Json* outputs = fields.object("structured_outputs");
    if (outputs == nullptr) return;
    const Fields inner(*outputs, "structured_outputs.");
    inner.refuse_others({"json", "regex", "choice", "grammar", "json_object"});
    read_schema(inner, "json");
    read_text(inner, "regex", PartKind::pattern);
    read_choices(inner, "choice");
    read_text(inner, "grammar", PartKind::gbnf);
    if (inner.flag("json_object").value_or(false)) set(inner, "json_object", {{{PartKind::json_object, {}}}});
    if (form_.is_any())
      fields.fail("structured_outputs", "needs json, regex, choice, grammar or json_object");
  }

  /// A schema, or its text.
  void read_schema(const Fields& fields, const char* name) {
    const Json* schema = fields.find(name);
    if (schema == nullptr) return;
    if (schema->is_string())
      return set(fields, name, {{{PartKind::json_schema, schema->get<std::string>()}}});
    if (!schema->is_object() && !schema->is_boolean())
      fields.fail(name, "must be a schema: an object, true or false, or its text");
    set(fields, name, {{{PartKind::json_schema, dump(*schema)}}});
  }

  void read_text(const Fields& fields, const char* name, PartKind kind) {
    std::optional<std::string> text = fields.text(name);
    if (!text) return;
    if (text->empty()) fields.fail(name, "is empty");
    set(fields, name, {{{kind, std::move(*text)}}});
  }

  void read_choices(const Fields& fields, const char* name) {
    const Json* choices = fields.list(name, kMostChoices);
    if (choices == nullptr) return;
    if (choices->empty()) fields.fail(name, "must list at least one text");
    std::vector<std::vector<GrammarPart>> alternatives;
    for (const Json& choice : *choices) {
      if (!choice.is_string() || choice.get_ref<const std::string&>().empty())
        fields.fail(name, "must list texts, none of them empty");
      alternatives.push_back({{PartKind::text, choice.get<std::string>()}});
    }
    set(fields, name, std::move(alternatives));
  }

  OutputForm form() && { return std::move(form_); }

 private:
  void set(const Fields& fields, const char* name, std::vector<std::vector<GrammarPart>> alternatives) {
    if (!form_.is_any())
      fields.fail(name, fmt::format("cannot hold as well as '{}': an answer has one form", form_.param));
    form_ = {std::move(alternatives), fields.path(name)};
  }

  OutputForm form_;
};

}  // namespace

OutputForm read_form(const Fields& fields) {
  FormReader reader;
  reader.read_response_format(fields);
  reader.read_structured_outputs(fields);
  reader.read_schema(fields, "guided_json");
  reader.read_text(fields, "guided_regex", PartKind::pattern);
  reader.read_choices(fields, "guided_choice");
  reader.read_text(fields, "guided_grammar", PartKind::gbnf);
  reader.read_text(fields, "grammar", PartKind::gbnf);
  reader.read_schema(fields, "json_schema");
  return std::move(reader).form();
}

}  // namespace caldera::serve
