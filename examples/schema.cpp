// Answers with a JSON document that obeys a schema, whatever the model would rather say: schema MODEL TEXT
#include <caldera/caldera.h>
#include <caldera/lm.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

int main(int argc, char** argv) {
  using namespace caldera;  // NOLINT(google-build-using-namespace): an example may
  constexpr const char* kSchema = R"({
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}, "people": {"type": "integer", "minimum": 0, "maximum": 99999999}},
    "required": ["city", "people"],
    "additionalProperties": false
  })";
  if (argc != 3) {
    std::fprintf(stderr, "usage: schema MODEL TEXT\n");
    return 2;
  }
  try {
    const std::unique_ptr<CausalLM> model = load_causal_lm(argv[1], default_device());
    const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(argv[1]);

    GenerateOptions options;
    options.max_tokens = 100;
    options.stop_ids = stop_tokens(model->config(), load_generation_config(argv[1]), tokenizer->eos_id());
    options.text.tokenizer = tokenizer;
    // The grammar may be used for any number of texts; a constraint follows one.
    const Grammar grammar = Grammar::json_schema(kSchema, tokenizer_vocabulary(*tokenizer, options.stop_ids));
    options.constraint = grammar.constraint();
    const Generation done = generate(*model, tokenizer->encode(argv[2]), options);

    const nlohmann::json document = nlohmann::json::parse(done.text);
    std::printf("%s\n", document.dump(2).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "schema: %s\n", error.what());
    return 1;
  }
}
