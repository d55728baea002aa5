// Continues a text with a language model, and prints it as it grows: generate MODEL TEXT
#include <caldera/caldera.h>
#include <caldera/lm.h>

#include <cstdio>
#include <memory>
#include <string_view>

int main(int argc, char** argv) {
  using namespace caldera;  // NOLINT(google-build-using-namespace): an example may
  if (argc != 3) {
    std::fprintf(stderr, "usage: generate MODEL TEXT\n");
    return 2;
  }
  try {
    // A folder in Hugging Face's layout, or a .gguf file.
    const std::unique_ptr<CausalLM> model = load_causal_lm(argv[1], default_device());
    const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(argv[1]);

    GenerateOptions options;
    options.max_tokens = 64;
    options.sampling = {.temperature = 0.8, .top_p = 0.95, .seed = 1};
    options.stop_ids = stop_tokens(model->config(), load_generation_config(argv[1]), tokenizer->eos_id());
    options.text.tokenizer = tokenizer;
    options.on_text = [](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
      return true;  // go on
    };
    std::printf("%s", argv[2]);
    const Generation done = generate(*model, tokenizer->encode(argv[2]), options);
    std::printf("\n%zu tokens, %.1f a second\n", done.ids.size(), done.decode_tokens_per_second);
  } catch (const Error& error) {
    std::fprintf(stderr, "generate: %s\n", error.what());
    return 1;
  }
}
